"""The threads of store.

- `cleaning`: SQL of retention
- `deleting`: SQL of deleting threads
- `forks`: SQL of forks
- `history`: SQL of history (P13)
- `thread_rows`: SQL of threads
"""
