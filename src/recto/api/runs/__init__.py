"""Runs: how one is started, and how its events are read.

- `routes`: routes of runs
- `chat`: the route of chat (P16)
- `ag_ui`: routes for AG-UI clients as they are (P15)
- `client_threads`: what clients call threads
- `admit`: admission of a run
- `admit_files`: files of a run's request
- `streams`: runs as server-sent events
- `joining`: a thread as it is, then what the run at work on it says
"""
