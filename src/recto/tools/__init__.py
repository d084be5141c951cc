"""Tools: what an agent can do. One file a tool, one place that bounds what it answers; none knows who is asking.

- `ports`: what a tool is to the rest: its offer, its context, its result
- `mark`: `@tool`, the mark of a function that is a tool
- `docstring`: what a docstring says of parameters, and the rest
- `signature`: what a function takes and is for: its schema, its description
- `function`: a typed Python function made a tool
- `blocking`: a thread for each piece of work that blocks
- `load_tools`: built-in tools, those of agents' folders, of skills and of packages
- `registry`: the tools there are, by name
- `call`: one call of one tool, bounded in time and size
- `client_schema`: schemas of clients' tools, and arguments checked against them
- `schema_cost`: what a JSON Schema may cost
- `documents`: tools that read documents
- `text`: texts of files, as tools show and change them
- `workspace`: the folder a thread works in, and the tools that read and change files there
- `commands`: commands in that folder, in a sandbox, and jobs in the background
- `builtin`: time, arithmetic, skills, earlier results
- `external`: tools that live elsewhere: servers of MCP, services with an OpenAPI file
"""
