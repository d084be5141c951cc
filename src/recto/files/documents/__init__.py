"""The documents of files.

- `cached_document`: one document that is being read, or was
- `document_cache`: where the bytes of a document come from, and whose fault it is when they do not
- `document_files`: kept documents in a folder
- `document_index`: where in its files each part of a kept document is
- `read_document`: documents read at once and whole, from a path or from bytes, for programs and the command line
"""
