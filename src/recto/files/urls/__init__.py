"""Signed urls: who has one may read that file for a while.

- `signing_keys`: the keys, given by a setting or kept in the data folder
- `signing`: urls of this server
- `presign`: urls of an S3 storage
"""
