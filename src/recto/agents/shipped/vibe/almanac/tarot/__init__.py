"""Tarot cards and spreads."""
