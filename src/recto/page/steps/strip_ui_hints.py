"""Removal of `ui_hints` from tool results (P14): they are for clients only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recto.conversation.json import dump
from recto.conversation.messages import Message, Text, ToolMessage, ToolPart
from recto.conversation.ui.compile_ui import HINTS, hinted
from recto.page.draft import Draft, change_results
from recto.page.manifest import Note

HINTS_LEFT_OUT = Note(
    decision="cut", rule="P14", reason="without its ui_hints, which are for clients; they get them all"
)


def strip_ui_hints(messages: Sequence[Message]) -> Draft:
    """Remove hints from tool results. The log keeps them, and clients receive their compiled form."""
    return change_results(messages, _without_hints, HINTS_LEFT_OUT)


def _without_hints(message: ToolMessage) -> ToolMessage:
    parts = tuple([_strip(part) for part in message.parts])
    return message if parts == message.parts else replace(message, parts=parts)


def _strip(part: ToolPart) -> ToolPart:
    """Rewrite a JSON object without the key; leave one with text around it as it is."""
    answer = hinted(part.text) if isinstance(part, Text) else None
    if answer is None or not isinstance(part, Text):
        return part
    rest = {name: value for name, value in answer.items() if name != HINTS}
    return replace(part, text=dump(rest).decode())
