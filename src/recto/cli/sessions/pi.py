"""pi sessions: linear logs (version 1) and trees of entries (versions 2 to 4).

A tree is read along one path, from the newest entry to the root. Texts for the model match those of pi.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from recto.cli.sessions.rows import SessionRow, branch_note, ignored_note, lineage, tokens
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation import messages as log
from recto.conversation.json import Json, Object, as_object, dump, objects, optional_text, optional_time, text_field
from recto.models.ports import Usage
from recto.page.fold.agent_tools import PI

MAIN_LANE = "main"

BRANCH_SUMMARY = (
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{summary}</summary>"
)


def read(rows: Sequence[SessionRow]) -> Session:
    """Read the messages on the path to the newest entry, ignoring compactions."""
    entries = [row for row in rows if _is_entry(row.fields)]
    path = _path(entries, rows)
    messages: list[log.Message] = []
    numbers: list[int] = []
    usages: dict[str, Usage] = {}
    models: dict[str, str] = {}
    for row, message in [(row, message) for row in path if (message := _message(row)) is not None]:
        messages.append(message)
        numbers.append(row.number)
        reply = row.fields.get("message")
        if isinstance(message, log.AssistantMessage) and isinstance(reply, Mapping):
            usage = reply.get("usage")
            if count := tokens(usage, "input", "cacheRead", "cacheWrite"):
                cached, cache_written = tokens(usage, "cacheRead"), tokens(usage, "cacheWrite")
                output = tokens(usage, "output")
                usages[message.id] = Usage(input=count, cached=cached, cache_written=cache_written, output=output)
            if isinstance(provider := reply.get("provider"), str) and isinstance(model := reply.get("model"), str):
                models[message.id] = f"{provider}:{model}"
    others = _count("message", entries) - _count("message", path)
    headers = (row.fields for row in rows if row.fields.get("type") == "session" or row.fields.get("kind") == "header")
    return Session(
        format="pi",
        messages=tuple(messages),
        root=next((cwd for header in headers if isinstance(cwd := header.get("cwd"), str)), None),
        tools=PI,
        usages=usages,
        models=models,
        compactions=tuple(_compactions(rows, path, numbers)),
        notes=(*ignored_note(_count("compaction", path), "compaction"), *branch_note(others)),
    )


def _count(kind: str, rows: Sequence[SessionRow]) -> int:
    return sum(row.fields.get("type") == kind for row in rows)


def _is_entry(fields: Object) -> bool:
    # Version 4 writes entries, lanes, facts and records; older versions write entries only, after one header.
    return fields.get("kind", "entry") == "entry" and fields.get("type") != "session"


def _path(entries: Sequence[SessionRow], rows: Sequence[SessionRow]) -> Sequence[SessionRow]:
    """Return the path to the newest entry of the main lane, or to the entry the lane was moved to."""
    by_id = {id: row for row in entries if "parentId" in row.fields and isinstance(id := row.fields.get("id"), str)}
    if not by_id:
        return entries
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
    parents: dict[str, str | None] = {
        id: parent if isinstance(parent := row.fields["parentId"], str) else None for id, row in by_id.items()
    }
    return [by_id[id] for id in lineage(leaf, parents)] if isinstance(leaf, str) else []


def _compactions(
    rows: Sequence[SessionRow], path: Sequence[SessionRow], numbers: Sequence[int]
) -> Iterator[SessionCompaction]:
    """Yield compactions; `numbers` are the row numbers of messages."""
    for row in path:
        match row.fields:
            case {"type": "compaction", "summary": str(summary), **fields}:
                place = bisect_left(numbers, row.number)
            case _:
                continue
        match fields:
            case {"firstKeptEntryId": str(id)}:
                first = next((row.number for row in rows if row.fields.get("id") == id), row.number)
            case {"firstKeptEntryIndex": int(index)} if 0 <= index < len(rows):
                first = rows[index].number
            case _:
                first = row.number
        yield SessionCompaction(place=place, first_kept=min(bisect_left(numbers, first), place), summary=summary)


def _message(row: SessionRow) -> log.Message | None:
    id = optional_text(row.fields, "id", row.where) or f"m{row.number}"
    time = optional_time(row.fields, "timestamp", row.where)
    fields, where, kind, role = row.fields, row.where, row.fields.get("type"), None
    if kind == "message":
        where = f"{row.where}: message"
        fields = as_object(fields.get("message"), where)
        role = fields.get("role")
    match kind, role:
        case ("message", "user" | "custom" | "hookMessage") | ("custom_message", _):
            return log.UserMessage(id=id, time=time, parts=tuple(_parts(fields.get("content"), where)))
        case "message", "assistant":
            return log.AssistantMessage(id=id, time=time, parts=tuple(_assistant_parts(fields, where)))
        case "message", "toolResult":
            return log.ToolMessage(
                id=id,
                time=time,
                tool_call_id=text_field(fields, "toolCallId", where),
                parts=tuple(_parts(fields.get("content"), where)),
                error="error" if fields.get("isError") is True else None,
            )
        case "message", "bashExecution" if fields.get("excludeFromContext") is not True:
            text = _command_text(fields, where)
        case ("message", "branchSummary") | ("branch_summary", _) if role or fields.get("summary"):
            text = BRANCH_SUMMARY.format(summary=text_field(fields, "summary", where))
        case _:
            return None
    return log.UserMessage(id=id, time=time, parts=(log.Text(text=text),))


def _command_text(message: Object, where: str) -> str:
    """Return a command that the user ran, with its output."""
    output = optional_text(message, "output", where)
    text = f"Ran `{text_field(message, 'command', where)}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    match message:
        case {"cancelled": True}:
            text += "\n\n(command cancelled)"
        case {"exitCode": int(code)} if code != 0:
            text += f"\n\nCommand exited with code {code}"
        case _:
            pass
    match message:
        case {"truncated": True, "fullOutputPath": str(path)}:
            return f"{text}\n\n[Output truncated. Full output: {path}]"
        case _:
            return text


def _parts(content: Json, where: str) -> Iterator[log.Text | log.File]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for place, block in objects(content, f"{where}.content"):
        match block.get("type"):
            case "text" if block.get("text"):
                yield log.Text(text=text_field(block, "text", place))
            case "image":
                mime = text_field(block, "mimeType", place)
                yield log.File(kind="image", source=log.Data(base64=text_field(block, "data", place)), mime_type=mime)
            case _:
                continue


def _assistant_parts(message: Object, where: str) -> Iterator[log.AssistantPart]:
    content = message.get("content")
    if isinstance(content, str):
        yield from _parts(content, where)
        return
    for place, block in objects(content, f"{where}.content"):
        match block.get("type"):
            case "text" if block.get("text"):
                yield log.Text(text=text_field(block, "text", place))
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
                yield log.ToolCall(
                    id=text_field(block, "id", place), name=text_field(block, "name", place), arguments=arguments
                )
            case _:
                continue


def _thinking(block: Object, message: Object, where: str) -> Iterator[log.Opaque]:
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
    yield log.Opaque(provider="anthropic", model=model, place="block", name=verbatim["type"], data=data)
