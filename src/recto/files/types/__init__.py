"""What a file is, by its name and its first bytes. The table of formats is `recto.conversation.file_formats`.

- `names`: what is kept of a sender's name, and its ending
- `signatures`: what the first bytes say
- `file_type`: name and bytes together
"""
