"""`recto fold`: a conversation from a file, what folding makes of it, and the report.

- `fold_options`: settings of folding, from the session, a TOML file and the command line
- `report`: what is shown to people
- `fold_command`: the command itself
"""
