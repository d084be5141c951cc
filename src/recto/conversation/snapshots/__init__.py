"""Snapshots: a conversation told at once, to who was not there when it was said.

- `agui_messages`: a thread's messages as AG-UI clients get them
- `mid_run`: what is told to who joins a run in its middle, and after a lost reply
- `replay`: the events of a run that has ended, made from the log
"""
