"""Tools that live elsewhere: on servers of MCP, started here or reached over HTTP, and behind OpenAPI files.

- `tool_names`: names that providers take, the same every time
- `secret_values`: secrets by name, put in where they are sent and hidden where they come back
- `mended_schema`: schemas of others as providers take them
- `sandbox`: the sandbox that servers started here run in
- `child_server`: a server of MCP as a child process
- `guarded_http`: a server of MCP over HTTP, through the one guarded way out
- `services`: what all of them work with, and what each place has to show
- `mcp_results`: what a server of MCP answers, as the parts of a result
- `mcp_tools`: tools and resources of a server of MCP as tools
- `mcp_server`: one session with a server of MCP, kept up
- `openapi_file`: an OpenAPI file as operations
- `http_service`: operations called over HTTP
- `live_tools`: the tools of each agent as they are now
"""
