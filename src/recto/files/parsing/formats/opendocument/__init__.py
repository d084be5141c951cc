"""The opendocument of formats.

- `odf`: words, lists, tables and charts of OpenDocument XML
- `odt`: an odt made ready for xberg, which drops charts and covered cells and takes remarks for notes
"""
