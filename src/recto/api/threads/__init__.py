"""Threads, and what can be seen of them.

- `kept_files`: the files of a thread as they were before its turns
- `routes`: routes of threads
- `turning_back`: rollback, undo and compact (R12, R13)
- `file_changes`: routes of what became of files, and of putting them back (R12)
- `history`: the route of history (P13)
- `thread_messages`: the route of messages in AG-UI form (P17)
- `calls`: routes of model calls (X1)
- `previews`: the route of previews (X1)
"""
