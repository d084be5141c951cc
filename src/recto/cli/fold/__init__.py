"""`recto fold`: folds a conversation from a file and reports the result."""
