"""Session files as conversations: OpenAI and Anthropic bodies, and the logs of pi, Claude Code, Codex and opencode.

Bytes in, values out: nothing here opens a file but `session_file`.

- `rows`: bytes as JSON
- `session`: a conversation read from a file, and what the file says about the agent that had it
- `pi`: sessions of the pi coding agent
- `claude_code`: sessions of Claude Code
- `codex`: rollouts of Codex CLI
- `opencode`: exports of opencode
- `detect`: which kind of conversation a file holds, seen by its keys and never by its name
- `session_file`: a session from a file or from standard input
"""
