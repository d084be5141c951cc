"""Files: uploaded, listed, served under signed urls, and gathered in datasets.

- `attachments`: routes of attachments (P9)
- `uploads`: uploads, file by file
- `multipart`: forms with files (multipart/form-data), read as they come
- `serving`: the route of files under their signed urls
- `datasets`: routes of datasets
"""
