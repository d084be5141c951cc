"""Formats that are text.

- `plain`: text as it is written
- `delimited`: csv and tsv
- `markdown`: Markdown as elements
- `web`: pages of the web
- `mail`: messages and what is attached to them
"""
