"""How the tables came to be what they are, one step a file. A step that was released is never edited.

- `env`: where Alembic begins
"""
