"""The types of files.

- `file_type`: whether bytes are text, in whatever encoding, and whether that is an SVG image
- `names`: names of files
- `signatures`: what bytes say of themselves
"""
