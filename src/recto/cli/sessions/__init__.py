"""Readers of session files: OpenAI and Anthropic bodies, and the logs of pi, Claude Code, Codex and opencode.

Readers take bytes and return values; only `session_file` opens files.
"""
