"""Presentations and drawings."""
