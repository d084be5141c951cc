"""Parsers of office formats."""
