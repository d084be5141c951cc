"""Session files as conversations: OpenAI and Anthropic bodies, and the logs of pi, Claude Code and Codex.

Bytes in, values out: nothing here opens a file.
"""

from recto.cli.sessions.detect import read_session
from recto.cli.sessions.session import Session, SessionTools

__all__ = ["Session", "SessionTools", "read_session"]
