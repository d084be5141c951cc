"""Users in the database.

- `profiles`: what is kept of a user, and their tier
- `export`: all a user has as JSON lines, and its deletion
"""
