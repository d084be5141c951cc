"""Threads: listing, reading, forking, deletion."""
