"""Tools that read the documents of a thread."""
