"""User files: typing, storage, signed urls, fetching and parsing. Parsing happens in child processes."""
