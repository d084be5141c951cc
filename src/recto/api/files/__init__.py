"""The files of api.

- `attachments`: routes of attachments (P9)
- `datasets`: routes of datasets
- `file_shapes`: what attachments and datasets look like, for the description of the API
- `multipart`: forms with files (multipart/form-data), read as they come
- `serving`: files under their signed urls
- `uploads`: uploads
"""
