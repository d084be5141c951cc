"""External tools: MCP servers, started here or reached over HTTP, and OpenAPI services."""
