"""The users of store.

- `export`: SQL of a user's data
- `profiles`: SQL of profiles
"""
