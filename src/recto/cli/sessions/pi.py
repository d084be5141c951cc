"""pi sessions: linear logs (version 1) and trees of entries (versions 2 to 4).

A tree is read along one path, from the newest entry to the root. Texts for the model match those of pi.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from recto.cli.sessions.rows import SessionRow, branch_note, ignored_note, lineage, tokens
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation.json import Json, Object, as_object, dump, objects, optional_text, optional_time, text_field
from recto.conversation.messages import (
    AssistantMessage,
    AssistantPart,
    Data,
    File,
    Logged,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.models.ports import Usage
from recto.page.fold.agent_tools import PI

MAIN_LANE = "main"

BRANCH_SUMMARY = (
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{summary}</summary>"
)
RAN = "Ran `{command}`\n"
OUTPUT = "```\n{output}\n```"
NO_OUTPUT = "(no output)"
CANCELLED = "\n\n(command cancelled)"
EXITED = "\n\nCommand exited with code {code}"
TRUNCATED = "\n\n[Output truncated. Full output: {path}]"


def read(rows: Sequence[SessionRow]) -> Session:
    """Read the messages on the path to the newest entry, ignoring compactions."""
    entries = [row for row in rows if _is_entry(row.fields)]
    path = _path(entries, rows)
    read_rows = [(row, message) for row in path if (message := _message(row)) is not None]
    others = _count("message", entries) - _count("message", path)
    headers = (row.fields for row in rows if row.fields.get("type") == "session" or row.fields.get("kind") == "header")
    return Session(
        format="pi",
        messages=tuple(message for _, message in read_rows),
        root=next((cwd for header in headers if isinstance(cwd := header.get("cwd"), str)), None),
        tools=PI,
        usages={message.id: usage for row, message in read_rows if (usage := _usage(row)).input},
        models={message.id: model for row, message in read_rows if (model := _model(row))},
        compactions=tuple(_compactions(rows, path, [row.number for row, _ in read_rows])),
        notes=(*ignored_note(_count("compaction", path), "compaction"), *branch_note(others)),
    )


def _count(kind: str, rows: Sequence[SessionRow]) -> int:
    return sum(row.fields.get("type") == kind for row in rows)


def _is_entry(fields: Object) -> bool:
    # Version 4 writes entries, lanes, facts and records; older versions write entries only, after one header.
    return fields.get("kind", "entry") == "entry" and fields.get("type") != "session"


def _path(entries: Sequence[SessionRow], rows: Sequence[SessionRow]) -> Sequence[SessionRow]:
    by_id = {id: row for row in entries if "parentId" in row.fields and isinstance(id := row.fields.get("id"), str)}
    if not by_id:
        return entries
    parents = {id: _parent(row.fields) for id, row in by_id.items()}
    leaf = _leaf(rows)
    return [by_id[id] for id in lineage(leaf, parents)] if leaf is not None else []


def _parent(fields: Object) -> str | None:
    parent = fields.get("parentId")
    return parent if isinstance(parent, str) else None


def _leaf(rows: Sequence[SessionRow]) -> str | None:
    """Return the newest entry of the main lane, or the entry the lane was moved to."""
    leaf: Json = None
    for row in rows:
        match row.fields:
            case {"kind": "lane", "lane": "main"}:
                leaf = row.fields.get("leafId")
            case {"kind": "entry", "lane": str(lane)} if lane != MAIN_LANE:
                continue
            case fields if _is_entry(fields):
                leaf = fields.get("id")
            case _:
                continue
    return leaf if isinstance(leaf, str) else None


def _usage(row: SessionRow) -> Usage:
    match row.fields.get("message"):
        case {"role": "assistant", "usage": usage}:
            return Usage(
                input=tokens(usage, "input", "cacheRead", "cacheWrite"),
                cached=tokens(usage, "cacheRead"),
                cache_written=tokens(usage, "cacheWrite"),
                output=tokens(usage, "output"),
            )
        case _:
            return Usage()


def _model(row: SessionRow) -> str:
    match row.fields.get("message"):
        case {"role": "assistant", "provider": str(provider), "model": str(model)}:
            return f"{provider}:{model}"
        case _:
            return ""


def _compactions(
    rows: Sequence[SessionRow], path: Sequence[SessionRow], read: Sequence[int]
) -> Iterator[SessionCompaction]:
    """Yield compactions; `read` are the row numbers of messages."""
    for row in path:
        match row.fields:
            case {"type": "compaction", "summary": str(summary)}:
                place = bisect_left(read, row.number)
                first = _first_kept(row.fields, rows)
                first_kept = place if first is None else min(bisect_left(read, first), place)
                yield SessionCompaction(place=place, first_kept=first_kept, summary=summary)
            case _:
                continue


def _first_kept(fields: Object, rows: Sequence[SessionRow]) -> int | None:
    match fields:
        case {"firstKeptEntryId": str(id)}:
            return next((row.number for row in rows if row.fields.get("id") == id), None)
        case {"firstKeptEntryIndex": int(index)} if 0 <= index < len(rows):
            return rows[index].number
        case _:
            return None


def _message(row: SessionRow) -> Message | None:
    fields = row.fields
    id = optional_text(fields, "id", row.where) or f"m{row.number}"
    logged = Logged(id=id, time=optional_time(fields, "timestamp", row.where))
    match fields.get("type"):
        case "message":
            place = f"{row.where}: message"
            return _role_message(as_object(fields.get("message"), place), place, logged)
        case "custom_message":
            return _user(fields, row.where, logged)
        case "branch_summary" if fields.get("summary"):
            return _user_text(BRANCH_SUMMARY.format(summary=text_field(fields, "summary", row.where)), logged)
        case _:
            return None


def _role_message(message: Object, where: str, logged: Logged) -> Message | None:
    match message.get("role"):
        case "user" | "custom" | "hookMessage":
            return _user(message, where, logged)
        case "assistant":
            return AssistantMessage(id=logged.id, time=logged.time, parts=tuple(_assistant_parts(message, where)))
        case "toolResult":
            return ToolMessage(
                id=logged.id,
                time=logged.time,
                tool_call_id=text_field(message, "toolCallId", where),
                parts=tuple(_parts(message.get("content"), where)),
                error="error" if message.get("isError") is True else None,
            )
        case "bashExecution" if message.get("excludeFromContext") is not True:
            return _user_text(_ran(message, where), logged)
        case "branchSummary":
            return _user_text(BRANCH_SUMMARY.format(summary=text_field(message, "summary", where)), logged)
        case _:
            return None


def _user(fields: Object, where: str, logged: Logged) -> UserMessage:
    return UserMessage(id=logged.id, time=logged.time, parts=tuple(_parts(fields.get("content"), where)))


def _user_text(text: str, logged: Logged) -> UserMessage:
    return UserMessage(id=logged.id, time=logged.time, parts=(Text(text=text),))


def _ran(message: Object, where: str) -> str:
    output = optional_text(message, "output", where)
    text = RAN.format(command=text_field(message, "command", where))
    text += OUTPUT.format(output=output) if output else NO_OUTPUT
    match message:
        case {"cancelled": True}:
            text += CANCELLED
        case {"exitCode": int(code)} if code != 0:
            text += EXITED.format(code=code)
        case _:
            pass
    match message:
        case {"truncated": True, "fullOutputPath": str(path)}:
            return text + TRUNCATED.format(path=path)
        case _:
            return text


def _parts(content: Json, where: str) -> Iterator[Text | File]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for place, block in objects(content, f"{where}.content"):
        match block.get("type"):
            case "text" if block.get("text"):
                yield Text(text=text_field(block, "text", place))
            case "image":
                mime = text_field(block, "mimeType", place)
                yield File(kind="image", source=Data(base64=text_field(block, "data", place)), mime_type=mime)
            case _:
                continue


def _assistant_parts(message: Object, where: str) -> Iterator[AssistantPart]:
    content = message.get("content")
    if isinstance(content, str):
        yield from _parts(content, where)
        return
    for place, block in objects(content, f"{where}.content"):
        match block.get("type"):
            case "text" if block.get("text"):
                yield Text(text=text_field(block, "text", place))
            case "thinking":
                yield from _thinking(block, message, place)
            case "toolCall":
                match block.get("arguments"):
                    case str(text):
                        arguments = text
                    case Mapping() as fields:
                        arguments = dump(fields).decode()
                    case _:
                        arguments = "{}"
                yield ToolCall(
                    id=text_field(block, "id", place), name=text_field(block, "name", place), arguments=arguments
                )
            case _:
                continue


def _thinking(block: Object, message: Object, where: str) -> Iterator[Opaque]:
    """Yield signed Anthropic thinking. For other providers, pi stores too little to send it back."""
    signature = optional_text(block, "thinkingSignature", where)
    if message.get("api") != "anthropic-messages" or not signature:
        return
    if block.get("redacted") is True:
        verbatim = {"type": "redacted_thinking", "data": signature}
    else:
        verbatim = {"type": "thinking", "thinking": text_field(block, "thinking", where), "signature": signature}
    model = optional_text(message, "model", where)
    data = dump(verbatim).decode()
    yield Opaque(provider="anthropic", model=model, place="block", name=verbatim["type"], data=data)
