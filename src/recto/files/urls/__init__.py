"""Signed urls, which grant read access to a file for a limited time."""
