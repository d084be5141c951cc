"""The threads of api.

- `calls`: routes that look at model calls (X1)
- `history`: the route of history
- `routes`: routes of threads
- `thread_shapes`: what threads, history and calls look like, for the description of the API
"""
