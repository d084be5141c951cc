"""Command execution in the workspace, sandboxed where possible and within limits."""
