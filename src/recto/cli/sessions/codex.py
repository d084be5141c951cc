"""Codex CLI rollouts: bare response items (old form) or items in envelopes (new form).

Reasoning is dropped: it is encrypted for the Responses API and no other wire format can carry it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from recto.cli.sessions.rows import SessionRow, ignored_note, tokens
from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation import messages as log
from recto.conversation.json import (
    Json,
    Object,
    as_object,
    dump,
    load_object,
    objects,
    optional_text,
    optional_time,
    text_field,
)
from recto.models.ports import Usage
from recto.page.fold.agent_tools import CODEX

MODEL = "openai:{name}"
ITEMS = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
    }
)
# Header that Codex writes above the output of a command, for each of its two shells.
EXIT_CODE = re.compile(
    r"Exit code: (?P<shell>-?\d+)\n"
    r"|(?:Chunk ID: [^\n]*\n)?Wall time: [^\n]*\nProcess exited with code (?P<exec>-?\d+)\n"
)


@dataclass(frozen=True, kw_only=True)
class CodexUsage:
    """Usage of a model call, and the session total after it."""

    usage: Usage
    total: int


def read(rows: Sequence[SessionRow]) -> Session:
    """Read the whole log. Text and calls of a reply form one message; compactions and rollbacks are ignored."""
    messages: list[log.Message] = []
    usages: dict[str, Usage] = {}
    models: dict[str, str] = {}
    compactions: list[SessionCompaction] = []
    total, model = 0, ""
    for row in rows:
        match row.fields:
            case {"type": "turn_context", "payload": {"model": str(name)}}:
                model = MODEL.format(name=name)
            case _:
                pass
        match _event(row), messages:
            case CodexUsage(usage=usage, total=new_total), _:
                # Usage belongs to the newest reply. Codex repeats it at rate limit events: equal totals are one call.
                newest = next((one.id for one in reversed(messages) if isinstance(one, log.AssistantMessage)), None)
                if newest is not None and newest not in usages and new_total != total and usage.input:
                    usages[newest] = usage
                total = new_total
            case str(summary), _:
                compactions.append(SessionCompaction(place=len(messages), first_kept=len(messages), summary=summary))
            case log.AssistantMessage() as more, [*_, log.AssistantMessage() as reply]:
                messages[-1] = replace(reply, parts=reply.parts + more.parts)
            case None, _:
                continue
            case message, _:
                messages.append(message)
                if model and isinstance(message, log.AssistantMessage):
                    models[message.id] = model
    kinds = [(row.fields.get("type"), row.fields.get("payload")) for row in rows]
    events = [(kind, payload) for kind, payload in kinds if isinstance(payload, Mapping)]
    roots = [event.get("cwd") for name in ("session_meta", "turn_context") for kind, event in events if kind == name]
    compacted = sum(kind == "compacted" for kind, _ in kinds)
    rollbacks = sum(kind == "event_msg" and event.get("type") == "thread_rolled_back" for kind, event in events)
    return Session(
        format="codex",
        messages=tuple(messages),
        root=next((root for root in roots if isinstance(root, str)), None),
        tools=CODEX,
        usages=usages,
        models=models,
        compactions=tuple(compactions),
        notes=(*ignored_note(compacted, "compaction"), *ignored_note(rollbacks, "rollback")),
    )


def _event(row: SessionRow) -> log.Message | CodexUsage | str | None:
    """Decode a row: a message, usage, or the summary of a compaction."""
    match row.fields:
        case {"type": "response_item"}:
            place = f"{row.where}: payload"
            return _message(as_object(row.fields.get("payload"), place), place, row)
        case {"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": usage, **info}}}:
            cached = tokens(usage, "cached_input_tokens")
            return CodexUsage(
                usage=Usage(input=tokens(usage, "input_tokens"), cached=cached, output=tokens(usage, "output_tokens")),
                total=tokens(info.get("total_token_usage"), "total_tokens"),
            )
        case {"type": "compacted", "payload": Mapping() as payload}:
            where = f"{row.where}: payload"
            items = payload.get("replacement_history")
            messages = (
                [_message(item, place, row) for place, item in objects(items, f"{where}.replacement_history")]
                if items
                else []
            )
            texts = [text for message in messages if message is not None for text in log.texts_of(message)]
            return "\n\n".join(texts) or optional_text(payload, "message", where) or ""
        case {"payload": _}:
            return None
        case fields:
            return _message(fields, row.where, row)


def _message(item: Object, where: str, row: SessionRow) -> log.Message | None:
    id = optional_text(item, "id", where) or f"m{row.number}"
    time = optional_time(row.fields, "timestamp", row.where)
    match item.get("type"):
        case "message":
            parts = tuple(_content_parts(item.get("content"), f"{where}.content"))
            text = "\n".join(part.text for part in parts if isinstance(part, log.Text))
            match item.get("role"):
                case "user":
                    return log.UserMessage(id=id, time=time, parts=parts)
                case "assistant":
                    return log.AssistantMessage(id=id, time=time, parts=parts)
                case "system":
                    return log.SystemMessage(id=id, time=time, text=text)
                case "developer":
                    return log.DeveloperMessage(id=id, time=time, text=text)
                case _:
                    return None
        case "function_call" | "custom_tool_call" as kind:
            is_text = kind == "custom_tool_call"
            text = text_field(item, "input" if is_text else "arguments", where)
            arguments = dump({"input": text}).decode() if is_text else text
            call_id, name = text_field(item, "call_id", where), text_field(item, "name", where)
        case "local_shell_call":
            call_id, name = optional_text(item, "call_id", where) or text_field(item, "id", where), "local_shell"
            arguments = dump(as_object(item.get("action"), f"{where}.action")).decode()
        case "function_call_output" | "custom_tool_call_output" if call_id := optional_text(item, "call_id", where):
            parts = tuple(_content_parts(item.get("output"), f"{where}.output"))
            texts = [part.text for part in parts if isinstance(part, log.Text)]
            error = "error" if texts and _has_failed(texts[0]) else None
            return log.ToolMessage(id=id, time=time, tool_call_id=call_id, parts=parts, error=error)
        case _:
            return None
    return log.AssistantMessage(id=id, time=time, parts=(log.ToolCall(id=call_id, name=name, arguments=arguments),))


def _content_parts(content: Json, where: str) -> Iterator[log.Text | log.File]:
    match content:
        case "":
            return
        case str():
            yield log.Text(text=content)
        case Mapping():
            yield from _content_parts(text_field(content, "content", where), where)
        case _:
            for place, block in objects(content, where):
                match block.get("type"):
                    case "input_text" | "output_text" | "text" if block.get("text"):
                        yield log.Text(text=text_field(block, "text", place))
                    case "input_image" if block.get("image_url"):
                        source, mime = log.source_from_url(text_field(block, "image_url", place))
                        yield log.File(kind="image", source=source, mime_type=mime)
                    case _:
                        continue


def _has_failed(output: str) -> bool:
    header = EXIT_CODE.match(output)
    if header:
        return (header["shell"] or header["exec"]).strip("-0") != ""
    if not output.startswith("{"):
        return False
    match load_object(output):
        case {"metadata": {"exit_code": int(code)}}:
            return code != 0
        case _:
            return False
