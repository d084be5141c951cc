"""The composition root: the only package that wires the others together."""
