"""CopilotKit's own routes, so that its chat needs no runtime of its makers (P15). Shapes are theirs.

- `suggestions`: suggestions under way, within the limits of each user
- `info`: the route that tells which agents there are, and what else
- `agent_routes`: routes of an agent: run, connect, stop, suggest
- `thread_routes`: routes of threads: list, rename, archive, delete
- `inspector`: routes of what its inspector looks at in a thread
- `single_endpoint`: all of these behind one address
"""
