"""Edits of request messages: folded or removed parts change, and everything else stays as sent.

Formats are recognised by their fields: calls are `tool_calls` or `tool_use` blocks, results are messages of role `tool`
or `tool_result` blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from recto.conversation.json import Json, Object
from recto.conversation.messages import AssistantMessage, Message, Text, ToolMessage

CALLS, CONTENT = "tool_calls", "content"


class ItemChange(NamedTuple):
    """A message of an item before and after the edit; `after` is None if it is removed."""

    before: Message
    after: Message | None


def edit_item(value: Object, changes: Sequence[ItemChange]) -> Object:
    """Return the item with its messages changed."""
    match changes:
        case [ItemChange(AssistantMessage() as before, AssistantMessage() as after)]:
            return _with_calls(value, before, after)
        case [ItemChange(ToolMessage() as before, ToolMessage() as after)] if value.get("role") == "tool":
            return {**value, CONTENT: _words(value.get(CONTENT), before, after)}
        case _:
            return {**value, CONTENT: _results(cast("Sequence[Object]", value.get(CONTENT)), changes)}


def _with_calls(value: Object, before: AssistantMessage, after: AssistantMessage) -> Object:
    kept = {id(part) for part in after.parts}
    calls = value.get(CALLS)
    if isinstance(calls, list):
        stay = [call for call, known in zip(calls, before.tool_calls, strict=True) if id(known) in kept]
        rest = {name: field for name, field in value.items() if name != CALLS}
        return {**rest, CALLS: stay} if stay else rest
    blocks = cast("Sequence[Json]", value.get(CONTENT))
    return {**value, CONTENT: [block for block, part in zip(blocks, before.parts, strict=True) if id(part) in kept]}


def _results(blocks: Sequence[Object], changes: Sequence[ItemChange]) -> list[Json]:
    """Edit the blocks of a user turn: results one by one; other blocks stay if the user's own message stays."""
    results = iter([change for change in changes if isinstance(change.before, ToolMessage)])
    says_more = any(change.after for change in changes if not isinstance(change.before, ToolMessage))
    edited = list[Json]()
    for block in blocks:
        if block.get("type") != "tool_result":
            edited += [block] if says_more else []
            continue
        before, after = next(results)
        if after is before:
            edited.append(block)
        elif isinstance(before, ToolMessage) and isinstance(after, ToolMessage):
            edited.append({**block, CONTENT: _words(block.get(CONTENT), before, after)})
    return edited


def _words(content: Json, before: ToolMessage, after: ToolMessage) -> Json:
    """Return the new content of a result: the text that replaces it or some of its parts."""
    if isinstance(content, list) and len(content) == len(before.parts) == len(after.parts):
        parts = zip(content, before.parts, after.parts, strict=True)
        return [block if now is was else _said(block, now) for block, was, now in parts]
    return "".join([part.text for part in after.parts if isinstance(part, Text)])


def _said(block: Json, part: object) -> Json:
    words = part.text if isinstance(part, Text) else ""
    if isinstance(block, Mapping) and block.get("type") == "text":
        return {**block, "text": words}
    return {"type": "text", "text": words}
