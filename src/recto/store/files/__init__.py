"""Files in the database: rows of uploads, not their bytes.

- `attachments`: attachments, the blobs they stand on, and what a user may have
- `file_refs`: which attachment each file id of a thread stands for
- `datasets`: datasets, and whom they are shared with
"""
