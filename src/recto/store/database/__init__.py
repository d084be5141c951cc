"""The database under the store: opened by its url, then work in transactions.

- `folder`: the data folder of one process, and who may read it
- `opening`: the database at a url, opened and brought to this version's tables
- `database`: what a database is to the store, and the locks that transactions take
- `sqlite`: SQLite: one writer thread, a few readers; and its backup
- `postgres`: PostgreSQL over asyncpg
- `notes`: short texts by name that all servers of a database agree on
"""
