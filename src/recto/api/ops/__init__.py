"""Operations: what there is on this server, and how it does.

- `agents`: the route of agents
- `health`: routes that say whether the server is well
- `operations`: routes of its version and its metrics
"""
