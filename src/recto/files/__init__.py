"""Files of users: taken in, typed, stored, served, fetched, read as documents. Parses in no process of ours.

- `ports`: what files need of others, and what others need of them
- `encoding`: bytes as text, in whatever encoding
- `types`: what a file is, by one table of formats
- `urls`: signed urls that files are read under
- `storage`: where bytes are
- `fetch`: files from other addresses
- `attachments`: files taken in, found, read and deleted
- `parsing`: documents read in child processes
- `documents`: documents cached and read a part at a time
"""
