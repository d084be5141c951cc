"""The runs of api.

- `admit_files`: the files of a run's request
- `chat`: the route of chat (P16)
- `routes`: what a request may wish of an agent's skills
- `streams`: runs as server-sent events
"""
