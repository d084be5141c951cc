"""Rows of uploaded files and datasets; storage holds the bytes."""
