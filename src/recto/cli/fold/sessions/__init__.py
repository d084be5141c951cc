"""Session files as conversations: OpenAI and Anthropic bodies, and the logs of pi, Claude Code and Codex.

Bytes in, values out: nothing here opens a file.

- `rows`: bytes as JSON
- `session`: a conversation read from a file, and what the file says about the agent that had it
- `pi`: sessions of the pi coding agent
- `claude_code`: sessions of Claude Code
- `codex`: rollouts of Codex CLI
- `detect`: which kind of conversation a file holds, seen by its keys and never by its name
"""
