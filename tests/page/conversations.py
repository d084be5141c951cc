"""Conversations as OpenAI-style JSON: rows as a log has them, and what of them goes over the wire."""

import json
from collections.abc import Mapping, Sequence

Row = dict[str, object]

# 2026-01-31 02:20:00 UTC, where the seed's first example begins.
START = 1_769_826_000_000
LOG_FIELDS = ("id", "timestamp", "messageStatus")


def at(minute: float) -> int:
    """Milliseconds since 1970, so many minutes into the conversation."""
    return START + round(minute * 60_000)


def user(text: str, **log: object) -> Row:
    return {"role": "user", "content": text, **log}


def asks(id: str, tool: str, arguments: object, **log: object) -> Row:
    """An assistant's message with one call. Arguments that are a string go as they are."""
    return asks_all(function_call(id, tool, arguments), **log)


def asks_all(*calls: Row, **log: object) -> Row:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **log}


def function_call(id: str, tool: str, arguments: object) -> Row:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": text}}


def answers(id: str, content: object, **log: object) -> Row:
    return {"role": "tool", "tool_call_id": id, "content": content, **log}


def reads(id: str, path: object, content: object, minute: float) -> list[Row]:
    """A read and its answer, both at that minute."""
    arguments = {"filePath": path}
    return [asks(id, "filesystem-read", arguments, timestamp=at(minute)), answers(id, content, timestamp=at(minute))]


def runs(id: str, content: object, minute: float, tool: str = "terminal-execute") -> list[Row]:
    """A command (or a search) and its answer, both at that minute."""
    return [asks(id, tool, {"command": f"make {id}"}, timestamp=at(minute)), answers(id, content, timestamp=at(minute))]


def on_wire(rows: Sequence[Row], folded_contents: Mapping[str, object] | None = None) -> list[Row]:
    """The rows without what only the log knows; answers to the calls in `folded_contents` have that content instead."""
    messages = [{name: value for name, value in row.items() if name not in LOG_FIELDS} for row in rows]
    for row in messages:
        if row["role"] == "tool" and row["tool_call_id"] in (folded_contents or {}):
            row["content"] = (folded_contents or {})[str(row["tool_call_id"])]
    return messages
