"""Threads in the database: what their owners see and do, and what is deleted.

- `thread_rows`: lists, titles, the runs of a thread
- `history`: the newest day of a thread
- `message_pages`: messages in view, a page at a time
- `forks`: a new thread from what is seen of another
- `rollbacks`: rollback and undo
- `deleting`: a thread deleted piece by piece
- `cleaning`: what is older than it is to be kept
"""
