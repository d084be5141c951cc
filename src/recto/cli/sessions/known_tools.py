"""Names of tools: those of the session's agent, or those of all that are known where it does not say whose it is."""

from __future__ import annotations

from dataclasses import fields

from recto.cli.sessions import claude_code, codex, opencode, pi
from recto.cli.sessions.session import Session, SessionTools

# Our own coder's.
CODER = SessionTools(
    reads=("filesystem-read",),
    path_args=("filePath",),
    terminal=("terminal-execute",),
    search=("ace-text_search",),
    edits=("filesystem-edit", "filesystem-create"),
    quote_args=("searchContent",),
)


def tools_of(session: Session) -> SessionTools:
    """What the tools of a session are called."""
    return session.tools if session.tools != SessionTools() else _all_known()


def _all_known() -> SessionTools:
    known = [vars(tools) for tools in (CODER, pi.TOOLS, claude_code.TOOLS, codex.TOOLS, opencode.TOOLS)]
    names = [field.name for field in fields(SessionTools)]
    return SessionTools(**{name: tuple(dict.fromkeys([tool for one in known for tool in one[name]])) for name in names})
