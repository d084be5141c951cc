"""Document parsers: bytes in, elements out. They run in a parser process."""
