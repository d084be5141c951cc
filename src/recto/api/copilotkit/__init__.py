"""CopilotKit's routes, which let its chat work without the CopilotKit runtime (P15)."""
