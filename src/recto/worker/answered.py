"""What readers are told of a tool's result."""

from __future__ import annotations

from recto.page import Text, ToolMessage, encode
from recto.page.canonical import Json
from recto.page.events import CallAnswered, Event
from recto.page.ui_told import ui_events


def answered(message: ToolMessage, locale: str) -> tuple[Event, ...]:
    """The result, and how it may be shown, where it says so."""
    content = _content(message)
    told = CallAnswered(message=message.id, call=message.tool_call_id, content=content)
    return (told, *ui_events(message.id, content, locale))


def _content(message: ToolMessage) -> Json:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    if len(texts) == len(message.parts):
        return "\n".join(texts)
    encoded = encode((message,), "ag-ui")[0]
    return encoded["content"] if isinstance(encoded, dict) else ""
