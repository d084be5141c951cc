"""Reader of session files. It detects the format by JSON keys, never by file name."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from recto.cli.sessions import claude_code, codex, opencode, pi
from recto.cli.sessions.rows import JsonLines, SessionRow, parse
from recto.cli.sessions.session import Session
from recto.conversation.json import Json, Object, kind_of
from recto.errors import NotAConversation, WireError
from recto.page.wire import anthropic, openai

EXPECTED = (
    "Recto reads an array of messages, an object with `messages`, and sessions of pi, Claude Code, Codex, opencode"
)
ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})
LONGEST_PROBLEM = 400
MOST_KEYS = 8
STDIN, STDIN_NAME = "-", "standard input"

SessionKind: TypeAlias = Literal["message", "conversation", "pi", "claude-code", "codex"]


def read_session(data: bytes, *, source: str) -> Session:
    """Read a conversation; errors name `source`. Raise NotAConversation for other data."""
    document = parse(data, source=source)
    try:
        session = _read(document, source)
    except WireError as error:
        problem = _one_line(f"it cannot be read as a conversation: {error}")
        raise NotAConversation(source=source, problem=problem) from error
    if not session.messages:
        raise NotAConversation(source=source, problem=f"it contains no messages. {EXPECTED}")
    return session


def _read(document: Json | JsonLines, source: str) -> Session:
    match document:
        case JsonLines():
            session = _read_rows(document.rows, source)
            if document.cut is None:
                return session
            return replace(session, notes=(f"Line {document.cut}, the last one, is incomplete.", *session.notes))
        case {"messages": [{"info": Mapping(), "parts": _}, *_]}:
            return opencode.read(document)
        case [{"info": Mapping(), "parts": _}, *_]:
            return opencode.read({"messages": document})
        case {"messages": _}:
            return _read_body(document)
        case Mapping():
            return _read_rows((SessionRow(number=1, fields=document),), source)
        case str() | bool() | int() | float() | None:
            raise NotAConversation(source=source, problem=f"it is JSON, but {kind_of(document)}. {EXPECTED}")
        case _:
            return _read_body({"messages": document})


def _read_rows(rows: Sequence[SessionRow], source: str) -> Session:
    session_kind: SessionKind | None = next((kind for row in rows if (kind := _kind(row.fields)) is not None), None)
    match session_kind:
        case "pi":
            return pi.read(rows)
        case "claude-code":
            return claude_code.read(rows)
        case "codex":
            return codex.read(rows)
        case "message":
            return _read_body({"messages": [row.fields for row in rows]})
        case "conversation":
            raise NotAConversation(source=source, problem="it contains a conversation per line. Pass one of them")
        case None:
            keys = ", ".join(list(rows[0].fields)[:MOST_KEYS]) or "none"
            problem = _one_line(f"it is JSON, but no conversation (its keys: {keys}). {EXPECTED}")
            raise NotAConversation(source=source, problem=problem)


def _kind(fields: Object) -> SessionKind | None:
    match fields:
        case (
            {"type": "session", "id": str()}
            | {"kind": "header", "version": int()}
            | {"type": "message", "message": {"role": str()}}
        ):
            return "pi"
        case (
            {"type": "user" | "assistant", "message": {}}
            | {"type": str(), "sessionId": str()}
            | {"type": "summary", "leafUuid": str()}
            | {"type": "file-history-snapshot"}
            | {"type": "system", "subtype": str()}
        ):
            return "claude-code"
        case (
            {"type": str(), "payload": {}}
            | {"record_type": str()}
            | {"id": str(), "timestamp": str(), "instructions": _}
        ):
            return "codex"
        case {"type": str(kind)} if kind in codex.ITEMS:
            return "codex"
        case {"messages": _}:
            return "conversation"
        case {"role": str()}:
            return "message"
        case _:
            return None


def _read_body(body: Object) -> Session:
    model = body.get("model")
    maker = model if isinstance(model, str) else None
    messages = body.get("messages")
    contents = (message.get("content") for message in _items(messages) if isinstance(message, Mapping))
    kinds = (block.get("type") for content in contents for block in _items(content) if isinstance(block, Mapping))
    if "system" in body or any(isinstance(kind, str) and kind in ANTHROPIC_BLOCKS for kind in kinds):
        name = f"anthropic:{maker}" if maker else ""
        return Session(format="openai", messages=anthropic.decode(dict(body), model=maker), model=name)
    name = f"openai:{maker}" if maker else ""
    return Session(format="openai", messages=openai.decode(messages, model=maker), model=name)


def _items(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_PROBLEM else line[:LONGEST_PROBLEM] + " ..."


def read_session_file(file: str) -> Session:
    """Read a session file; `-` is standard input. Raise NotAConversation if it is unreadable."""
    name = STDIN_NAME if file == STDIN else file
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise NotAConversation(source=name, problem=f"it cannot be read ({error.strerror})") from error
    return read_session(data, source=name)
