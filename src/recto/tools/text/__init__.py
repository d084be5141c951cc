"""Text operations of the file tools: search, edits, diffs. No file access."""
