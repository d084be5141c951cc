"""Prompt texts, each beside its renderer."""
