"""The log of a thread in the database: written once, read whole or from a number on.

- `entries`: entries as bytes and back
- `read_log`: reading logs and events
- `visible`: what of a log is in view
- `read_end`: of a long log, what pages can show
"""
