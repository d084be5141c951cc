"""The ops of api.

- `agents`: routes of agents
- `health`: routes that say whether the server is well
- `operations`: routes for whoever runs the server
"""
