"""The gateway (X3): requests of other agents, on the paths that their SDKs know.

- `relayed_answer`: an answer of a provider, passed back as it comes
- `routes`: who asks with which key, and where it goes
"""
