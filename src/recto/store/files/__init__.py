"""The files of store.

- `attachments`: SQL of attachments and of the blobs they stand on
- `datasets`: SQL of datasets
- `file_refs`: SQL of file ids
"""
