"""Downloads of files from urls named by users, models or documents (D7)."""
