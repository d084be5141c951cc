"""Configuration: readers for YAML and front matter that report lines, and the settings of the server."""
