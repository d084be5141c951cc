"""The `recto` command: parses arguments, calls the packages below, prints results."""
