"""Routes for threads, their history and their stored model calls."""
