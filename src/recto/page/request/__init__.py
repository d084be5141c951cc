"""Requests of other agents (X3): parsed with the place of each message, changed only where a rule applies."""
