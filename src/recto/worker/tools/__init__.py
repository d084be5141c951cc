"""The tools of worker.

- `calls_in_text`: calls a model writes into its words (P11)
- `run_tools`: tool calls of a reply
- `tool_context`: the skills of a run's agent, for the tools that take one up and read its files
- `tool_progress`: how far a tool is, told to whoever watches the run
"""
