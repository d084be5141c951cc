"""The `recto` command: reads arguments, calls the rooms below, prints. Decides nothing about pages.

- `agents`: `recto agents`
- `data`: `recto backup` and `recto user`
- `fold`: ...
- `hello`: A first run, over HTTP like any client's
- `keys`: `recto keys`
- `logs`: log lines of the server
- `main`: the commands of `recto` and their exit codes
- `options`: options of the commands
- `read`: `recto read`
- `serve`: `recto serve`
- `server_settings`: settings of the server (C2)
- `storage`: `recto storage`
"""
