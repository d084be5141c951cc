"""Document parsers: bytes in, elements out. They run in the child process."""
