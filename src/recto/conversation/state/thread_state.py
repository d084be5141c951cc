"""The state of a thread: what a request and tools change of it, and what readers hear. The log has it, pages do not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from recto.conversation.events import StateDelta, StateSnapshot
from recto.conversation.json import Json, dump
from recto.conversation.log import Entry, View, view
from recto.conversation.state.json_patch import DEEPEST, ValueChange, changed, difference, is_same

# A change of more than so many places is told as the whole.
MOST_OPERATIONS = 100
# What stands for a name that is not there: no JSON is equal to it.
_NOTHING = object()


def state_events(seen: View) -> tuple[StateSnapshot, ...]:
    """What somebody has to hear who knows nothing of a thread's state. Of one without a state that is nothing."""
    return (StateSnapshot(state=seen.state),) if seen.state is not None else ()


def change_events(before: Json, after: Json) -> tuple[StateSnapshot | StateDelta, ...]:
    """What readers hear who know the state before. One of a thread that had none know nothing."""
    if before is None or after is None:
        # Clients have an empty object where there is nothing.
        return () if before is after else (StateSnapshot(state={} if after is None else after),)
    operations = difference(before, after)
    if len(operations) > MOST_OPERATIONS:
        return (StateSnapshot(state=after),)
    return (StateDelta(operations=operations),) if operations else ()


def state_text(state: Json) -> str:
    """A state as the log has it."""
    return dump(state).decode()


def apply_changes(state: Json, changes: Sequence[ValueChange]) -> Json:
    """The state after some changes, in their order. One that has no place in it raises a WireError."""
    for change in changes:
        state = changed(state, change)
    return state


def state_sent(log: Sequence[Entry], now: View, sent: Json, admitted: datetime) -> Json:
    """The state after a request that brought the client's copy: what the client changed of it is taken over.

    What that is, is told from the state that was in view when the request came: a copy of it changes nothing, be it
    that a tool, another request or a rollback has changed the thread's since. Nor does an empty object, which is what
    clients have that know of none. `now` is what is in view with the request's own entries.
    """
    if sent is None or sent == {}:
        return now.state
    before = view([entry for entry in log if entry.time is None or entry.time < admitted])
    return cast("Json", _merged(before.state, sent, now.state, DEEPEST))


def _merged(base: object, sent: object, now: object, depth: int) -> object:
    """What was changed from `base` on both sides; where both changed the same, what was sent."""
    if _is_same(sent, base) or _is_same(sent, now):
        return now
    if not (isinstance(sent, dict) and isinstance(now, dict) and depth):
        return cast("object", sent)
    theirs, ours = cast("dict[str, object]", sent), cast("dict[str, object]", now)
    known = cast("dict[str, object]", base) if isinstance(base, dict) else {}
    merged = {
        name: _merged(known.get(name, _NOTHING), theirs.get(name, _NOTHING), ours.get(name, _NOTHING), depth - 1)
        for name in (*ours, *[name for name in theirs if name not in ours])
    }
    return {name: value for name, value in merged.items() if value is not _NOTHING}


def _is_same(one: object, other: object) -> bool:
    if one is _NOTHING or other is _NOTHING:
        return one is other
    return is_same(cast("Json", one), cast("Json", other))
