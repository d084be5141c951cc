"""Claude Code sessions. The format is private and changes without notice: unknown rows are skipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from recto.cli.sessions.rows import SessionRow, branch_note, ignored_note, lineage, tokens
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation.json import Json, Object, as_object, optional_text, optional_time
from recto.conversation.messages import AssistantMessage, AssistantPart, Message, ToolCall, UserMessage, texts_of
from recto.errors import WireError
from recto.models.ports import Usage
from recto.page.fold.agent_tools import CLAUDE_CODE
from recto.page.wire import anthropic

USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
MODEL = "anthropic:{name}"
# Rows shown to the user but never sent to the model.
HIDDEN_FLAGS = ("isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


# The rows of one reply, or a single other row.
SessionTurn: TypeAlias = tuple[SessionRow, ...]


def read(rows: Sequence[SessionRow]) -> Session:
    """Read the conversation as the model received it, but ignore compactions."""
    main = [
        row
        for row in rows
        if not (row.fields.get("isSidechain") is True or isinstance(row.fields.get("parent_tool_use_id"), str))
    ]
    # The log of a subagent consists of sidechain rows only.
    main = _newest_versions(main if any(_is_message(row.fields) for row in main) else rows)
    turns = tuple(_turns(_path(main), main))
    messages: list[Message] = []
    usages: dict[str, Usage] = {}
    models: dict[str, str] = {}
    # Summaries of compactions by place: at a boundary, or at the summary that follows it.
    summaries: dict[int, str] = {}
    for turn in turns:
        if _is_summary(turn[0].fields):
            content = as_object(turn[0].fields.get("message"), f"{turn[0].where}: message").get("content")
            decoded = _decoded("user", content, None, turn[0])
            summaries[len(messages)] = "\n".join(text for message in decoded for text in texts_of(message))
        elif _is_boundary(turn[0].fields):
            summaries.setdefault(len(messages), "")
        replies = [reply for row in turn if (reply := _assistant(row)) is not None]
        usage, model = _usage(replies), _text(replies[0], "model") if replies else None
        for message in _messages(turn):
            messages.append(message)
            if usage.input:
                usages[message.id] = usage
            # Synthetic replies have a model name in brackets.
            if model and not model.startswith("<"):
                models[message.id] = MODEL.format(name=model)
    numbers = {row.number for turn in turns for row in turn}
    compactions = max(sum(_is_boundary(row.fields) for row in main), sum(_is_summary(row.fields) for row in main))
    outside = [row.fields for row in main if row.number not in numbers]
    others = sum(_is_message(fields) and not _is_summary(fields) for fields in outside)
    return Session(
        format="claude-code",
        messages=tuple(messages),
        root=next((cwd for row in rows if isinstance(cwd := row.fields.get("cwd"), str)), None),
        tools=CLAUDE_CODE,
        usages=usages,
        models=models,
        compactions=tuple(
            SessionCompaction(place=place, first_kept=place, summary=text) for place, text in summaries.items()
        ),
        notes=(*ignored_note(compactions, "compaction"), *branch_note(others)),
    )


def _is_message(fields: Object) -> bool:
    return fields.get("type") in ("user", "assistant") and isinstance(fields.get("message"), Mapping)


def _newest_versions(rows: Sequence[SessionRow]) -> Sequence[SessionRow]:
    """Replace each row by its newest version with the same uuid, keeping place and parent.

    Compactions repeat the rows they keep, under the summary.
    """
    newest: dict[str, SessionRow] = {}
    for row in rows:
        key = _text(row.fields, "uuid") or row.where
        first = newest.get(key, row)
        fields = row.fields if first is row else {**row.fields, "parentUuid": first.fields.get("parentUuid")}
        newest[key] = SessionRow(number=first.number, fields=fields)
    return tuple(newest.values())


def _path(rows: Sequence[SessionRow]) -> Sequence[SessionRow]:
    """Return the path to the newest message; logs without a tree are read in order."""
    by_uuid = {uuid: row for row in rows if (uuid := _text(row.fields, "uuid")) and "parentUuid" in row.fields}
    leaf = next((uuid for uuid, row in reversed(by_uuid.items()) if _is_message(row.fields)), None)
    if leaf is None or all(row.fields["parentUuid"] is None for row in by_uuid.values()):
        return rows
    parents: dict[str, str | None] = {}
    previous: str | None = None
    for uuid, row in by_uuid.items():
        parent = _text(row.fields, "parentUuid") or _text(row.fields, "logicalParentUuid")
        if parent not in parents and (_is_boundary(row.fields) or _is_summary(row.fields)):
            # A compaction splits the log. Attach it to the row before if its parent is missing.
            parent = previous
        parents[uuid] = parent
        previous = uuid
    return [by_uuid[uuid] for uuid in lineage(leaf, parents)]


def _is_boundary(fields: Object) -> bool:
    return fields.get("subtype") == "compact_boundary"


def _is_summary(fields: Object) -> bool:
    return fields.get("isCompactSummary") is True


def _turns(path: Sequence[SessionRow], rows: Sequence[SessionRow]) -> Iterator[SessionTurn]:
    replies: dict[str, list[SessionRow]] = {}
    for row in rows:
        if (reply := _reply_id(row)) is not None:
            replies.setdefault(reply, []).append(row)
    # Results on other branches, by call, for calls without a result on the path.
    answered_calls = {call for row in path for call in _ids(row.fields, "tool_result", "tool_use_id")}
    results: dict[str, SessionRow] = {}
    for row in rows:
        calls = _ids(row.fields, "tool_result", "tool_use_id")
        if calls and not answered_calls.intersection(calls):
            results[calls[0]] = row
            answered_calls.update(calls)
    ids: set[str] = set()
    for row in path:
        reply = _reply_id(row)
        if reply is None:
            yield (row,)
        elif reply not in ids:
            ids.add(reply)
            turn = tuple(replies[reply])
            yield turn
            calls = (call for part in turn for call in _ids(part.fields, "tool_use", "id"))
            yield from ((results[call],) for call in calls if call in results)


def _reply_id(row: SessionRow) -> str | None:
    match row.fields:
        case {"type": "assistant", "message": {"id": str(id)}}:
            return id
        case {"type": "assistant", "message": Mapping()}:
            return row.where
        case _:
            return None


def _ids(fields: Object, kind: str, name: str) -> Sequence[str]:
    """Return field `name`, an id, of the blocks of one kind."""
    match fields.get("message"):
        case {"content": content} if isinstance(content, Sequence) and not isinstance(content, str):
            blocks = [block for block in content if isinstance(block, Mapping) and block.get("type") == kind]
            return [id for block in blocks if isinstance(id := block.get(name), str)]
        case _:
            return []


def _text(fields: Object, name: str) -> str | None:
    value: Json = fields.get(name)
    return value if isinstance(value, str) else None


def _messages(turn: SessionTurn) -> Iterator[Message]:
    rows = [row for row in turn if not any(row.fields.get(flag) is True for flag in HIDDEN_FLAGS)]
    if not rows:
        return
    match rows[0].fields:
        case {"type": "assistant", "message": Mapping()}:
            parts = [part for row in rows for part in _reply_parts(row)]
            # Later rows may repeat a call, but providers reject duplicate ids.
            calls = {part.id: part for part in reversed(parts) if isinstance(part, ToolCall)}
            unique = [part for part in parts if not isinstance(part, ToolCall) or calls[part.id] is part]
            yield AssistantMessage(id=_id(rows[0]), time=_time(rows[0]), parts=tuple(unique))
        case {"type": "user", "message": Mapping() as message}:
            yield from _user_messages(message.get("content"), rows[0])
        case {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}}:
            # Text typed while the model was running has no other row.
            yield from _user_messages(prompt, rows[0])
        case _:
            return


def _reply_parts(row: SessionRow) -> Iterator[AssistantPart]:
    message = _assistant(row) or {}
    model = optional_text(message, "model", f"{row.where}: message")
    for reply in _decoded("assistant", message.get("content"), model, row):
        if isinstance(reply, AssistantMessage):
            yield from reply.parts


def _user_messages(content: Json, row: SessionRow) -> Iterator[Message]:
    messages = _decoded("user", content, None, row)
    nonempty = [message for message in messages if not isinstance(message, UserMessage) or message.parts]
    for index, message in enumerate(nonempty):
        # A row may hold several results; the first takes the row's id, the others get a suffix.
        id = f"{_id(row)}.{index}" if index else _id(row)
        yield replace(message, id=id, time=_time(row))


def _decoded(role: str, content: Json, model: str | None, row: SessionRow) -> Sequence[Message]:
    try:
        return anthropic.decode([{"role": role, "content": _blocks(content)}], model=model)
    except WireError as error:
        place = error.where.replace("messages[0]", "message", 1)
        raise WireError(where=f"{row.where}: {place}", problem=error.problem) from error


def _blocks(content: Json) -> Json:
    """Return the blocks that providers accept back: no empty texts, no unsigned thinking."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, Sequence):
        return content
    blocks = list[Json]()
    for block in content:
        match block:
            case {"type": "text", "text": ""}:
                pass
            case {"type": "thinking"} if not block.get("signature"):
                pass
            case {"type": "tool_result", "content": inner} if not isinstance(inner, str):
                blocks.append({**block, "content": _blocks(inner)})
            case {"type": "text"}:
                blocks.append({name: value for name, value in block.items() if value is not None})
            case _:
                blocks.append(block)
    return blocks


def _usage(replies: Sequence[Object]) -> Usage:
    """Return the provider's counts. Every row of a reply has counts; only the last counts are final."""
    usage = next((usage for one in reversed(replies) if tokens(usage := one.get("usage"), *USAGE)), None)
    return Usage(
        input=tokens(usage, *USAGE),
        cached=tokens(usage, "cache_read_input_tokens"),
        cache_written=tokens(usage, "cache_creation_input_tokens"),
        output=tokens(usage, "output_tokens"),
    )


def _assistant(row: SessionRow) -> Object | None:
    match row.fields:
        case {"type": "assistant", "message": Mapping() as message}:
            return message
        case _:
            return None


def _id(row: SessionRow) -> str:
    return optional_text(row.fields, "uuid", row.where) or f"m{row.number}"


def _time(row: SessionRow) -> datetime | None:
    return optional_time(row.fields, "timestamp", row.where)
