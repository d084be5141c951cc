"""Agents: a folder with `AGENT.md`, tools and skills as a value. Refuses to run it: that is the worker.

- `file_input`: what files an agent takes (D1)
- `external_tools`: tools that live elsewhere, as settings name them
- `agent`: an agent as a value
- `fold_table`: settings of folding as people write them, in `AGENT.md` and in a TOML file
- `profile_schema`: the JSON Schema of a user's profile
- `agent_settings`: settings of `AGENT.md`, checked
- `agent_warnings`: what is allowed and yet hardly meant
- `agent_folder`: one agent's folder as an agent, in one language or several
- `folders`: the shipped agents and those of a folder
- `spoken_language`: the language a conversation begins in
- `template`: what a new agent's folder begins with
"""
