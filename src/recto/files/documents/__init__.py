"""Parsed documents: the cache, and reading them in parts or whole."""
