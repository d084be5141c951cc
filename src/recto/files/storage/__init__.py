"""Where the bytes of files are: by name, in a folder or a bucket.

- `choose_storage`: which storage a setting names
- `blobs`: names of blobs, and a try whether a storage can be used
- `unfinished`: a file on its way to its name in a folder
- `thread_queue`: work done in a thread while the next is brought
- `local_storage`: a folder of this machine
- `s3_storage`: a bucket that speaks S3
- `owner`: the one database that a storage belongs to
- `storage_health`: whether a storage can be used now
"""
