"""Formats that are text.

- `plain`: text as it is written
- `delimited`: csv and tsv
- `markdown`: Markdown as elements
- `notebook`: notebooks of Jupyter
- `web`: pages of the web
- `mail`: messages and what is attached to them
"""
