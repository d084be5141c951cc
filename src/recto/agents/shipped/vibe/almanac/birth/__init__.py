"""Parsing of birth data written by people."""
