"""The log of store.

- `entries`: entries of the log as bytes and back
- `read_log`: SQL of reading
- `visible`: SQL of what is in view
"""
