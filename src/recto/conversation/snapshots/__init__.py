"""Snapshots of a conversation for late subscribers."""
