"""A step that changes tool results one by one, as the model is to read them. What it said of old ones is carried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from recto.page.draft import Draft, replaced
from recto.page.growing import grow
from recto.page.manifest import Note
from recto.page.messages import Message, ToolMessage, remember


def change_results(messages: Sequence[Message], change: Callable[[ToolMessage], ToolMessage], note: Note) -> Draft:
    """The conversation with each tool result as `change` gives it. One that it gives back as it is, is not noted."""
    return replaced(messages, grow(messages, _find_changed, change).shown, note)


@dataclass(frozen=True, kw_only=True)
class _Changed:
    """Tool results that were changed, by place, among so many messages."""

    count: int = 0
    shown: Mapping[int, Message] = field(default_factory=dict[int, Message])


def _find_changed(
    known: _Changed | None, messages: Sequence[Message], change: Callable[[ToolMessage], ToolMessage]
) -> _Changed:
    known = known or _Changed()
    tools = [(place, one) for place, one in enumerate(messages, start=known.count) if isinstance(one, ToolMessage)]
    found = {place: changed for place, one in tools if (changed := remember(one, change)) is not one}
    return _Changed(count=known.count + len(messages), shown={**known.shown, **found})
