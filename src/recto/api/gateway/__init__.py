"""The gateway (X3): requests of other agents, on the paths that their SDKs know.

- `passed_headers`: which headers go on, to a provider and back
- `relayed_answer`: an answer of a provider, passed back as it comes
- `routes`: who asks with which key, and where it goes
"""
