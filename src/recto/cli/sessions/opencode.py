"""opencode sessions, as `opencode export` and its server write them: messages with parts, calls with results.

Thinking is dropped: the file does not name its model reliably enough to send it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from recto.cli.sessions.rows import ignored_note, tokens
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation import messages as log
from recto.conversation.json import Object, as_object, dump, objects, optional_text, optional_time, text_field
from recto.models.ports import Usage
from recto.page.fold.agent_tools import OPENCODE

# Texts that opencode sends for parts without text: a summary request, or a tool run by the user.
WORDS = {"compaction": "What did we do so far?", "subtask": "The following tool was executed by the user"}
INTERRUPTED = "[Tool execution was interrupted]"
# Files of these types are already part of the message text.
IN_WORDS = ("text/plain", "application/x-directory")
KINDS: tuple[log.FileKind, ...] = ("image", "audio", "video")


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A message of the file with its place, fields and parts."""

    where: str
    info: Object
    parts: tuple[tuple[str, Object], ...]

    @property
    def id(self) -> str:
        return text_field(self.info, "id", f"{self.where}.info")

    @property
    def is_summary(self) -> bool:
        return self.info.get("role") == "assistant" and self.info.get("summary") is True


@dataclass(frozen=True, kw_only=True)
class _Step:
    """Messages from one step of a row, and their usage."""

    row: _Row
    messages: tuple[log.Message, ...]
    usage: Usage = Usage()


def read(exported: Object) -> Session:
    """Read the whole log. Each step of a reply is a message; summaries are ignored."""
    rows = [
        _Row(
            where=where,
            info=as_object(fields.get("info"), f"{where}.info"),
            parts=tuple(objects(fields.get("parts"), f"{where}.parts")),
        )
        for where, fields in objects(exported.get("messages"), "messages")
    ]
    steps = [step for row in rows for step in _steps(row) if step.messages]
    compactions = tuple(_compactions(rows, steps))
    usages: dict[str, Usage] = {}
    models: dict[str, str] = {}
    for step in steps:
        match step.row.info:
            case {"role": "assistant", "providerID": str(provider), "modelID": str(model)}:
                models[step.messages[0].id] = f"{provider}:{model}"
            case _:
                pass
        if step.usage.input:
            usages[step.messages[0].id] = step.usage
    roots = [exported.get("info"), *[row.info.get("path") for row in rows]]
    names = ("directory", *["cwd"] * len(rows))
    folders = [root.get(name) for root, name in zip(roots, names, strict=True) if isinstance(root, Mapping)]
    return Session(
        format="opencode",
        messages=tuple(message for step in steps for message in step.messages),
        root=next((folder for folder in folders if isinstance(folder, str)), None),
        tools=OPENCODE,
        usages=usages,
        models=models,
        compactions=compactions,
        notes=ignored_note(len(compactions), "compaction"),
    )


def _steps(row: _Row) -> Iterator[_Step]:
    if row.info.get("role") == "user":
        parts: list[log.Text | log.File] = []
        for place, part in row.parts:
            match part:
                case {"type": "text", "ignored": True}:
                    pass
                case {"type": "text", "text": str(text)} if text:
                    parts.append(log.Text(text=text))
                case {"type": "file", "mime": str(mime)} if mime not in IN_WORDS:
                    parts.append(_file(part, mime, place))
                case {"type": str(kind)} if kind in WORDS:
                    parts.append(log.Text(text=WORDS[kind]))
                case _:
                    pass
        time = optional_time(_times(row.info), "created", row.where)
        yield _Step(row=row, messages=(log.UserMessage(id=row.id, time=time, parts=tuple(parts)),) if parts else ())
        return
    begins = [index for index, (_, part) in enumerate(row.parts) if part.get("type") == "step-start"]
    bounds = [0, *begins[1:], len(row.parts)]
    for number, (begin, end) in enumerate(pairwise(bounds)):
        id = f"{row.id}.{number}" if number else row.id
        yield _reply(row, row.parts[begin:end], id, alone=end - begin == len(row.parts))


def _file(part: Object, mime: str, where: str) -> log.File:
    source, _ = log.source_from_url(text_field(part, "url", where))
    kinds: list[log.FileKind] = [kind for kind in KINDS if mime.startswith(kind)]
    kind = kinds[0] if kinds else "document"
    return log.File(kind=kind, source=source, mime_type=mime, name=optional_text(part, "filename", where))


def _reply(row: _Row, parts: Sequence[tuple[str, Object]], id: str, *, alone: bool) -> _Step:
    content: list[log.Text | log.ToolCall] = []
    results: list[log.ToolMessage] = []
    for where, part in parts:
        match part.get("type"):
            case "text" if part.get("text"):
                content.append(log.Text(text=text_field(part, "text", where)))
            case "tool":
                call, result = _call_and_result(part, where)
                content.append(call)
                results.append(result)
            case _:
                continue
    time = optional_time(_times(row.info), "created", row.where)
    reply = log.AssistantMessage(id=id, time=time, parts=tuple(content))
    finish = next((part for _, part in parts if part.get("type") == "step-finish"), row.info if alone else {})
    counts = finish.get("tokens")
    cache = counts.get("cache") if isinstance(counts, Mapping) else None
    cached, cache_written = tokens(cache, "read"), tokens(cache, "write")
    usage = Usage(
        input=tokens(counts, "input") + cached + cache_written,
        cached=cached,
        cache_written=cache_written,
        output=tokens(counts, "output", "reasoning"),
    )
    return _Step(row=row, messages=(reply, *results) if content else (), usage=usage)


def _call_and_result(part: Object, where: str) -> tuple[log.ToolCall, log.ToolMessage]:
    id = text_field(part, "callID", where)
    state = as_object(part.get("state"), f"{where}.state")
    inputs = as_object(state.get("input") or {}, f"{where}.state.input")
    call = log.ToolCall(id=id, name=text_field(part, "tool", where), arguments=dump(inputs).decode())
    status, error = state.get("status"), None
    if status == "completed":
        text = optional_text(state, "output", f"{where}.state") or ""
    else:
        error = "error"
        text = optional_text(state, "error", f"{where}.state") or INTERRUPTED
    texts = (log.Text(text=text),) if text else ()
    attachments = objects(state.get("attachments") or [], f"{where}.state.attachments")
    files = [_file(part, optional_text(part, "mime", place) or "", place) for place, part in attachments]
    time = optional_time(_times(state), "end", f"{where}.state")
    message = log.ToolMessage(
        id=optional_text(part, "id", where) or id, time=time, tool_call_id=id, parts=(*texts, *files), error=error
    )
    return call, message


def _times(fields: Object) -> Object:
    times = fields.get("time")
    return times if isinstance(times, Mapping) else {}


def _compactions(rows: Sequence[_Row], steps: Sequence[_Step]) -> Iterator[SessionCompaction]:
    """Yield a compaction after each summary. The request of the summary names the first message to keep."""
    tails = {
        row.id: part.get("tail_start_id") for row in rows for _, part in row.parts if part.get("type") == "compaction"
    }
    place, starts = 0, dict[str, int]()
    for number, step in enumerate(steps):
        starts.setdefault(step.row.id, place)
        place += len(step.messages)
        is_last = number + 1 == len(steps) or steps[number + 1].row is not step.row
        if step.row.is_summary and is_last:
            tail = tails.get(optional_text(step.row.info, "parentID", step.row.where) or "")
            texts = [text for _, part in step.row.parts if isinstance(text := part.get("text"), str)]
            first_kept = starts.get(tail, place) if isinstance(tail, str) else place
            yield SessionCompaction(place=place, first_kept=first_kept, summary="\n".join(texts))
