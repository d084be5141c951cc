"""The database of store.

- `database`: what a database is to the store
- `folder`: the data folder
- `notes`: SQL of notes
- `opening`: opening a database by its url
- `postgres`: postgreSQL over asyncpg
- `sqlite`: SQLite
"""
