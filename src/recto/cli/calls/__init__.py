"""`recto explain`: stored model calls in the terminal."""
