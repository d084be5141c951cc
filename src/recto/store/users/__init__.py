"""Users in the database.

- `profiles`: what is kept of a user, and their tier
- `export`: all a user has as JSON lines, and its deletion
- `user_records`: the methods of the store that are about users
"""
