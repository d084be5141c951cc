"""The append-only log of a thread."""
