"""Sandboxes around child processes: parsers of documents, servers of tools, commands of agents.

- `bubblewrap`: the program, the words that confine a command, and a trial of them
- `system_calls`: the calls of the system that a command may not make
"""
