"""Threads, and what can be seen of them.

- `routes`: routes of threads
- `history`: the route of history (P13)
- `thread_messages`: the route of messages in AG-UI form (P17)
- `calls`: routes of model calls (X1)
- `previews`: the route of previews (X1)
"""
