"""The users of api.

- `me`: routes of a user's own data
- `profile`: routes of profiles
"""
