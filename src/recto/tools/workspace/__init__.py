"""Workspaces: a folder for each thread."""
