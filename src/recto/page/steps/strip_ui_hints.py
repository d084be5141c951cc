"""Tool results as the model sees them: without `ui_hints` (P14), which are for whoever shows them to people."""

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
    """The conversation with tool results that hold no hints. The log keeps them; clients get what they compile to."""
    return change_results(messages, _without_hints, HINTS_LEFT_OUT)


def _without_hints(message: ToolMessage) -> ToolMessage:
    parts = tuple([_strip(part) for part in message.parts])
    return message if parts == message.parts else replace(message, parts=parts)


def _strip(part: ToolPart) -> ToolPart:
    """A result that is an object is written without the key; one with words around it is left as it is."""
    answer = hinted(part.text) if isinstance(part, Text) else None
    if answer is None or not isinstance(part, Text):
        return part
    rest = {name: value for name, value in answer.items() if name != HINTS}
    return replace(part, text=dump(rest).decode())
