"""Sessions of Claude Code. The format is its own and changes without notice: rows not known here are passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recto.cli.sessions.claude_tree import Turn, conversation
from recto.cli.sessions.rows import Row, branch_note, ignored_note, tokens
from recto.cli.sessions.session import Session, SessionTools
from recto.errors import WireError
from recto.page.canonical import Json
from recto.page.messages import AssistantMessage, AssistantPart, Message, ToolCall, UserMessage
from recto.page.wire import anthropic
from recto.page.wire.fields import Object, optional_text, optional_time

TOOLS = SessionTools(reads=("Read",), path_args=("file_path",), terminal=("Bash",), search=("Grep", "Glob"))
USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# Rows people see and the model never did.
UNSEEN = ("isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


def read(rows: Sequence[Row]) -> Session:
    """The conversation as the model had it, but whole: summaries of compactions stand for nothing here."""
    found = conversation(rows)
    told = [(turn, message) for turn in found.turns for message in _messages(turn)]
    return Session(
        format="claude-code",
        messages=tuple(message for _, message in told),
        root=next((cwd for row in rows if isinstance(cwd := row.fields.get("cwd"), str)), None),
        tools=TOOLS,
        reported={message.id: used for turn, message in told if (used := _reported(turn))},
        notes=(*ignored_note(found.compactions, "compaction"), *branch_note(found.others)),
    )


def _reported(turn: Turn) -> int:
    """What the provider counted. The rows of a reply repeat it; the last one is the final word."""
    counts = [tokens(message.get("usage"), *USAGE) for row in turn.rows if (message := _assistant(row)) is not None]
    return next((count for count in reversed(counts) if count), 0)


def _assistant(row: Row) -> Object | None:
    match row.fields:
        case {"type": "assistant", "message": Mapping() as message}:
            return message
        case _:
            return None


def _messages(turn: Turn) -> Iterator[Message]:
    seen = [row for row in turn.rows if not any(row.fields.get(flag) is True for flag in UNSEEN)]
    if not seen:
        return
    match seen[0].fields:
        case {"type": "assistant", "message": Mapping()}:
            yield _reply(seen)
        case {"type": "user", "message": Mapping() as message}:
            yield from _said(message.get("content"), seen[0])
        case {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}}:
            # Words typed while the model was at work; they never become a row of their own.
            yield from _said(prompt, seen[0])
        case _:
            return


def _reply(rows: Sequence[Row]) -> AssistantMessage:
    parts = tuple(_calls_once(part for row in rows for part in _reply_parts(row)))
    return AssistantMessage(id=_id(rows[0]), time=_time(rows[0]), parts=parts)


def _calls_once(parts: Iterable[AssistantPart]) -> Iterator[AssistantPart]:
    """The parts, without calls that a later row repeats: providers refuse the same id twice."""
    seen: set[str] = set()
    for part in parts:
        if isinstance(part, ToolCall) and part.id in seen:
            continue
        if isinstance(part, ToolCall):
            seen.add(part.id)
        yield part


def _reply_parts(row: Row) -> Iterator[AssistantPart]:
    message = _assistant(row) or {}
    model = optional_text(message, "model", f"{row.where}: message")
    for reply in _decoded("assistant", message.get("content"), model, row):
        if isinstance(reply, AssistantMessage):
            yield from reply.parts


def _said(content: Json, row: Row) -> Iterator[Message]:
    messages = _decoded("user", content, None, row)
    spoken = [message for message in messages if not isinstance(message, UserMessage) or message.parts]
    for index, message in enumerate(spoken):
        # One row may hold several results; the first has the row's name, the others count on from it.
        id = f"{_id(row)}.{index}" if index else _id(row)
        yield replace(message, id=id, time=_time(row))


def _decoded(role: str, content: Json, model: str | None, row: Row) -> Sequence[Message]:
    try:
        return anthropic.decode([{"role": role, "content": _blocks(content)}], model=model)
    except WireError as error:
        place = error.where.replace("messages[0]", "message", 1)
        raise WireError(where=f"{row.where}: {place}", problem=error.problem) from error


def _blocks(content: Json) -> Json:
    """The blocks without those no provider takes back: empty texts and unsigned thinking."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, Sequence):
        return content
    return [_block(block) for block in content if not _is_void(block)]


def _is_void(block: Json) -> bool:
    match block:
        case {"type": "text", "text": ""}:
            return True
        case {"type": "thinking"}:
            return not block.get("signature")
        case _:
            return False


def _block(block: Json) -> Json:
    match block:
        case {"type": "tool_result", "content": content} if not isinstance(content, str):
            return {**block, "content": _blocks(content)}
        case {"type": "text"}:
            return {name: value for name, value in block.items() if value is not None}
        case _:
            return block


def _id(row: Row) -> str:
    return optional_text(row.fields, "uuid", row.where) or f"m{row.number}"


def _time(row: Row) -> datetime | None:
    return optional_time(row.fields, "timestamp", row.where)
