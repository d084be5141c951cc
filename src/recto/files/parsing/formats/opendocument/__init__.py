"""OpenDocument: what its formats share, and texts.

- `odf`: words, lists, tables and charts of its XML
- `odt`: an odt made ready for xberg, and the numbers of its lists
"""
