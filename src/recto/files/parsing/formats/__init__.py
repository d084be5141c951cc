"""Parsers of documents: bytes of a format in, elements out. They run in the child.

- `parse`: which parser reads what, by the table of formats
- `text`: texts, tables as text, web pages, mail
- `letters`: texts without pages that count: docx, doc, odt, rtf, epub
- `docx`: formulas and numbers of a docx
- `rtf`: an rtf made ready for xberg
- `opendocument`: odt, and what all OpenDocument formats share
- `pdf`: pages of a PDF
- `slides`: presentations and drawings
- `sheets`: spreadsheets
- `extraction`: what xberg finds in a document
- `xberg_nodes`: its nodes as elements
- `counting`: numbers as lists count with them
- `tables`: rows of cells as tables
- `unpaged`: elements without pages, as frames
- `archive`: members of a zip, and marks of a password
- `package`: parts of an office package
- `ole`: streams of the old Office container
"""
