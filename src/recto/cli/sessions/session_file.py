"""Reading of session files and standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from recto.cli.sessions.detect import read_session
from recto.cli.sessions.session import Session
from recto.errors import NotAConversation

STDIN, STDIN_NAME = "-", "standard input"


def read_session_file(file: str) -> Session:
    """Read a session file; `-` is standard input. Raise NotAConversation if it is unreadable."""
    name = STDIN_NAME if file == STDIN else file
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise NotAConversation(source=name, problem=f"it cannot be read ({error.strerror})") from error
    return read_session(data, source=name)
