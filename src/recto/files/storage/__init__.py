"""The storage of files.

- `blobs`: what all storages share
- `choose_storage`: which storage a setting names
- `local_storage`: bytes by name in a folder of this machine
- `owner`: A storage belongs to one database
- `s3_storage`: bytes by name in a bucket that speaks S3
- `storage_health`: whether a storage can be used now
- `unfinished`: A file on its way to its name in a folder
"""
