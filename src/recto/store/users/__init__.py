"""User data."""
