"""What an agent can do, one file per tool, with one place that bounds output. Refuses to know who is asking.

- `builtin`: ...
- `call`: one call of one tool
- `client_schema`: schemas of clients' tools, and arguments checked against them
- `documents`: ...
- `function`: A typed Python function becomes a tool
- `load_tools`: where tools come from
- `mark`: the mark that makes a function a tool
- `ports`: what a tool is to the rest
- `registry`: the tools there are, by name
- `schema_cost`: what a JSON Schema may cost, told before it is used
- `thread`: A thread for each piece of work that blocks
- `workspace`: ...
"""
