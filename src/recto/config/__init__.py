"""Files that people write: Markdown with settings in YAML, each value with its line. Refuses to know what they mean."""
