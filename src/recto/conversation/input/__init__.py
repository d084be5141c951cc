"""Client input: from JSON to log entries."""
