"""What a file is, by its name, its first bytes and one table of formats.

- `names`: what is kept of a sender's name, and its ending
- `signatures`: what the first bytes say
- `file_formats`: the table of formats, one row each
- `file_type`: name and bytes together
"""
