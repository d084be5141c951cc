"""Tool results as the model sees them: without `ui_hints` (P14), which are for whoever shows them to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from recto.page.canonical import dump
from recto.page.draft import Draft, replaced
from recto.page.growing import grow
from recto.page.manifest import Note
from recto.page.messages import Message, Text, ToolMessage, ToolPart, remember
from recto.page.ui_told import HINTS, hinted

UNHINTED = Note(decision="cut", rule="P14", reason="without its ui_hints, which are for clients; they get them all")


def unhint(messages: Sequence[Message]) -> Draft:
    """The conversation with tool results that hold no hints. The log keeps them; clients get what they compile to."""
    return replaced(messages, grow(messages, _find_hinted).shown, UNHINTED)


@dataclass(frozen=True, kw_only=True)
class _Hinted:
    """Tool results without their hints, by place, among so many messages."""

    count: int = 0
    shown: Mapping[int, Message] = field(default_factory=dict[int, Message])


def _find_hinted(known: _Hinted | None, messages: Sequence[Message]) -> _Hinted:
    known = known or _Hinted()
    tools = [(place, one) for place, one in enumerate(messages, start=known.count) if isinstance(one, ToolMessage)]
    found = {place: plain for place, one in tools if (plain := remember(one, _unhinted)) is not one}
    return _Hinted(count=known.count + len(messages), shown={**known.shown, **found})


def _unhinted(message: ToolMessage) -> ToolMessage:
    parts = tuple([_plain(part) for part in message.parts])
    return message if parts == message.parts else replace(message, parts=parts)


def _plain(part: ToolPart) -> ToolPart:
    """A result that is an object is written without the key; one with words around it is left as it is."""
    answer = hinted(part.text) if isinstance(part, Text) else None
    if answer is None or not isinstance(part, Text):
        return part
    rest = {name: value for name, value in answer.items() if name != HINTS}
    return replace(part, text=dump(rest).decode())
