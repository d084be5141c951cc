"""Operational routes: health, metrics, server information."""
