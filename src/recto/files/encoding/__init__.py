"""Decoding of bytes in any text encoding."""
