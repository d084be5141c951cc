"""The composition root: the only room that wires the others together. Refuses to hold any other logic.

- `agents`: who can work here
- `files`: files put together
- `run_server`: A server from its settings
"""
