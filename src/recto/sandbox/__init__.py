"""Sandboxes for child processes: document parsers, tool servers, agent commands."""
