"""OpenDocument: shared reading, and text documents."""
