"""The composition root: the only file that wires rooms together. Refuses to hold any other logic."""
