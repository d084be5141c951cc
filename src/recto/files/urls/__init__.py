"""The urls of files.

- `presign`: urls that an S3 storage answers without credentials, for a while (AWS Signature Version 4)
- `signing`: signed urls of files
- `signing_keys`: keys that sign urls
"""
