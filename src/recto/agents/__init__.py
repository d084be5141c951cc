"""Load an agent folder (AGENT.md and its skills) into values. Refuses to run it: that is the worker.

- `agent`: an agent as a value
- `agent_folder`: one agent's folder as values
- `agent_settings`: the settings of `AGENT.md` as tables
- `agent_warnings`: what of an agent's settings is allowed and yet hardly meant
- `file_input`: what files an agent takes (D1)
- `fold_table`: settings of folding as people write them, in `AGENT.md` and in the `[fold]` table of a TOML file
- `folders`: agents of a folder
- `profile_schema`: what is kept of a user held against the agent's JSON Schema, field by field
- `template`: what a new agent's folder begins with
"""
