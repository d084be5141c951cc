"""Positions in the sky at a moment, and the western natal chart."""
