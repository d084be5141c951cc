"""The composition root: the only room that wires the others together. Refuses to hold any other logic."""

from recto.app.server import check, serve

__all__ = ["check", "serve"]
