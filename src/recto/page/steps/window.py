"""The history window (S1, S2): the newest messages before the current turn. The turn itself is always whole."""

from __future__ import annotations

from collections.abc import Sequence

from recto.conversation.messages import AssistantMessage, Message, ToolMessage
from recto.page.draft import Draft, unchanged
from recto.page.manifest import Note

# Unread messages are always outside the window: as many messages follow them as any page shows.
COUNTED = ("user", "assistant", "tool", "unread")
# Instructions are not history: they hold regardless of their age.
KEPT = ("system", "developer")
OUTSIDE = "outside the newest {limit} messages of history"


def window(messages: Sequence[Message], turn_start: int, limit: int | None) -> Draft:
    """Keep only the newest `limit` messages of history; None keeps all.

    Messages of user, assistant and tool count; those of system and developer always stay. An assistant's calls and
    their results stay together if any of them falls into the window or the current turn.
    """
    if limit is None:
        return unchanged(messages)
    counted = [place for place in range(turn_start) if messages[place].role in COUNTED]
    if len(counted) <= limit:
        return unchanged(messages)
    first = counted[-limit] if limit else turn_start
    kept = {place for place, message in enumerate(messages) if place >= first or message.role in KEPT}
    for group in _groups(messages):
        if not kept.isdisjoint(group):
            kept.update(group)
    origins = sorted(kept)
    note = Note(decision="dropped", rule="S2", reason=OUTSIDE.format(limit=limit))
    notes = {place: note for place in range(first) if place not in kept}
    return Draft(messages=tuple([messages[place] for place in origins]), origins=origins, notes=notes)


def _groups(messages: Sequence[Message]) -> list[set[int]]:
    """Group the place of each assistant message with calls with the places of its results."""
    callers: dict[str, set[int]] = {}
    groups: list[set[int]] = []
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            group = {place}
            groups.append(group)
            callers |= {call.id: group for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in callers:
            callers[message.tool_call_id].add(place)
    return groups
