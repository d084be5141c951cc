"""Text formats."""
