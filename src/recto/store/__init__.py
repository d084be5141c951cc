"""The store, the only room with SQL: log, threads, runs, events, files, users. The log is appended to, never edited.

- `store`: the one class the rest has to do with; every method is one transaction
- `ports`: what goes in and comes out: admissions, runs, leases, changes, events, calls
- `schema`: the tables
- `statement`: SQL built once, the same on SQLite and PostgreSQL
- `cursor`: where a list goes on, as a text for clients
- `database`: SQLite and PostgreSQL: opening, transactions, locks, the data folder
- `log`: entries as bytes, and reading them
- `files`: attachments, their blobs, file ids of threads, datasets
- `runs`: from admission to the last event of a run, and what its calls took
- `threads`: lists, history, forks, deletion and retention
- `users`: profiles, and the export and deletion of all a user has
- `migrations`: how the tables came to be what they are, one step a file
"""
