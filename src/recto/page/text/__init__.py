"""Token counting and truncation."""
