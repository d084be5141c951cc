"""Documents as they are read: cached in files, a part at a time, or whole at once.

- `document_cache`: each document read once for its owner
- `cached_document`: one of them, which readers wait for
- `document_index`: where each part of it is in its files
- `document_files`: those files, in a folder
- `read_document`: a document read whole, for programs and the command line
"""
