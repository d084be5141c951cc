"""The text of formats.

- `delimited`: tables that are written as text, a row a line (csv, tsv)
- `mail`: messages
- `markdown`: elements of a text in Markdown, block by block
- `plain`: text as it is written, in pieces that make exactly the whole again
- `web`: pages of the web
"""
