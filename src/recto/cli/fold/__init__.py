"""The fold of cli.

- `fold_options`: the `[fold]` table of a TOML file
- `report`: what `recto fold` shows people
- `sessions`: session files as conversations
"""
