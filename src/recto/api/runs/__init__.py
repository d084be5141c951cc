"""Runs: how one is started, and how its events are read.

- `routes`: routes of runs
- `resume`: the route that answers interrupts
- `chat`: the route of chat (P16)
- `admit`: admission of a run
- `admit_files`: files of a run's request
- `streams`: runs as server-sent events
"""
