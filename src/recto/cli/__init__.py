"""The `recto` command: reads arguments, calls the rooms below, prints. Decides nothing about pages.

- `main`: the commands of `recto`
- `options`: options of the commands
- `command`: exit codes, errors as one line, groups of commands
- `server_settings`: settings of the server in force (C2)
- `server_entry`: how a server is served, for commands that need one
- `serve`: `recto serve`
- `gateway`: `recto gateway`
- `logs`: log lines of the server
- `hello`: a first run, over HTTP like any client's
- `sessions`: session files as conversations
- `fold`: `recto fold`
- `replay`: `recto replay`
- `chat`: `recto chat`
- `read`: `recto read`
- `calls`: `recto explain`
- `elsewhere`: tools that live elsewhere, tried for a command
- `agents`: `recto agents`
- `explain`: `recto agents explain`
- `data`: `recto backup`, `recto user` and `recto storage`
- `keys`: `recto keys`
"""
