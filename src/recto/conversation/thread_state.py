"""The state that a thread shares with its clients: merging, single changes, and events. It is in the log, not in pages.

Places are JSON Pointers (RFC 6901) and differences are JSON Patch (RFC 6902).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, cast

import orjson

from recto.conversation.events import StateDelta, StateSnapshot
from recto.conversation.json import Json, dump, load
from recto.conversation.log import Entry, View, view
from recto.errors import WireError

# The maximum number of operations. A larger difference is sent as a snapshot.
MOST_OPERATIONS = 100
# The value of a missing name. No JSON is equal to it.
_NOTHING = object()


def state_events(log_view: View) -> tuple[StateSnapshot, ...]:
    """Return the events for a reader without the thread's state; none if the thread has no state."""
    return (StateSnapshot(state=log_view.state),) if log_view.state is not None else ()


def change_events(before: Json, after: Json) -> tuple[StateSnapshot | StateDelta, ...]:
    """Return the events for readers that have the state `before`."""
    if before is None or after is None:
        # Clients show a missing state as an empty object.
        return () if before is after else (StateSnapshot(state={} if after is None else after),)
    operations = difference(before, after)
    if len(operations) > MOST_OPERATIONS:
        return (StateSnapshot(state=after),)
    return (StateDelta(operations=operations),) if operations else ()


def state_text(state: Json) -> str:
    """Return a state in the form of the log."""
    return dump(state).decode()


def apply_changes(state: Json, changes: Sequence[ValueChange]) -> Json:
    """Return the state after these changes, in order. Raise a WireError if a place does not exist."""
    for change in changes:
        state = apply_change(state, change)
    return state


def merge_sent_state(log: Sequence[Entry], now: View, client_state: Json, admitted_at: datetime) -> Json:
    """Return the state after a request with the client's copy: merge the client's changes into the current state.

    The base of the merge is the state in view when the request came, so an unchanged copy changes nothing, even if a
    tool, another request or a rollback has changed the state since. An empty object changes nothing either: clients
    without a state send one. `now` is the view with the entries of the request.
    """
    if client_state is None or client_state == {}:
        return now.state
    before = view([entry for entry in log if entry.time is None or entry.time < admitted_at])
    return cast("Json", _merge(before.state, client_state, now.state, DEEPEST))


def _merge(base: object, client_value: object, now: object, depth: int) -> object:
    """Merge the changes of both sides since `base`. If both changed the same place, the client's value wins."""
    if is_same(client_value, base) or is_same(client_value, now):
        return now
    if not (isinstance(client_value, dict) and isinstance(now, dict) and depth):
        return cast("object", client_value)
    theirs, ours = cast("dict[str, object]", client_value), cast("dict[str, object]", now)
    base_fields = cast("dict[str, object]", base) if isinstance(base, dict) else {}
    fields = {
        name: _merge(base_fields.get(name, _NOTHING), theirs.get(name, _NOTHING), ours.get(name, _NOTHING), depth - 1)
        for name in (*ours, *[name for name in theirs if name not in ours])
    }
    return {name: value for name, value in fields.items() if value is not _NOTHING}


PatchOperation: TypeAlias = Mapping[str, Json]
_Steps: TypeAlias = Sequence[str]
_Items: TypeAlias = list[Json]
_Members: TypeAlias = dict[str, Json]

# The maximum depth of paths and merges. Deeper values are changed as a whole, which bounds the recursion.
DEEPEST = 32
LAST = "-"
NO_POINTER = "is no JSON Pointer; it is empty for the whole, else /name/0/name"
TOO_DEEP = f"leads more than {DEEPEST} deep; make the value flatter"


@dataclass(frozen=True, kw_only=True)
class ValueChange:
    """A new value at a place, as JSON text; None removes the place."""

    path: str
    value: str | None = None


def value_at(whole: Json, path: str) -> Json:
    """Return the value at a place, or None if there is none."""
    value = whole
    for step in _steps(path):
        match value:
            case dict():
                value = value.get(step)
            case list() if _index(step, len(value)) is not None:
                value = value[int(step)]
            case _:
                return None
    return value


def apply_change(whole: Json, change: ValueChange) -> Json:
    """Return the changed value with missing objects created. Raise a WireError if another value is in the way."""
    steps = _steps(change.path)
    if change.value is None:
        return _without(whole, steps)
    try:
        return _with(whole, steps, load(change.value))
    except LookupError as error:
        raise WireError(where=change.path, problem=str(error.args[0])) from error


def _steps(path: str) -> _Steps:
    if not path:
        return ()
    if not path.startswith("/"):
        raise WireError(where=path[:DEEPEST], problem=NO_POINTER)
    steps = path[1:].split("/")
    if len(steps) > DEEPEST:
        raise WireError(where=path[:DEEPEST], problem=TOO_DEEP)
    return [step.replace("~1", "/").replace("~0", "~") for step in steps]


def _index(step: str, count: int) -> int | None:
    """Return the index that a step names, or None if the list has no such item."""
    is_number = step.isascii() and step.isdigit() and (step == "0" or step[0] != "0")
    return int(step) if is_number and len(step) <= len(str(count)) and int(step) < count else None


def _with(value: Json, steps: _Steps, new: Json) -> Json:
    if not steps:
        return new
    step, rest = steps[0], steps[1:]
    match value:
        case None:
            return {step: _with(None, rest, new)}
        case dict():
            return {**value, step: _with(value.get(step), rest, new)}
        case list():
            if step in (LAST, str(len(value))):
                return [*value, _with(None, rest, new)]
            place = _index(step, len(value))
            if place is None:
                raise LookupError(f"{step!r} is no place in a list of {len(value)}; {LAST!r} is behind its last item")
            return [*value[:place], _with(value[place], rest, new), *value[place + 1 :]]
        case _:
            raise LookupError(f"there is no place {step!r} in {dump(value)[:64].decode(errors='replace')}")


def _without(value: Json, steps: _Steps) -> Json:
    """Return the value with a place removed. If the place does not exist, return the value unchanged."""
    if not steps:
        return None
    step, rest = steps[0], steps[1:]
    match value:
        case dict() if step in value:
            remaining = {name: one for name, one in value.items() if name != step}
            return {**value, step: _without(value[step], rest)} if rest else remaining
        case list() if (place := _index(step, len(value))) is not None:
            return [*value[:place], *([_without(value[place], rest)] if rest else []), *value[place + 1 :]]
        case _:
            return value


def difference(before: Json, after: Json) -> list[PatchOperation]:
    """Return the operations that turn one value into the other, in order; none if both are the same."""
    return list(_difference(before, after, ""))


def _difference(before: Json, after: Json, path: str) -> Iterator[PatchOperation]:
    match before, after:
        case (dict(), dict()) if path.count("/") < DEEPEST:
            for name in [name for name in before if name not in after]:
                yield {"op": "remove", "path": _below(path, name)}
            for name, value in after.items():
                if name in before:
                    yield from _difference(before[name], value, _below(path, name))
                else:
                    yield {"op": "add", "path": _below(path, name), "value": value}
        case (list(), list()) if path.count("/") < DEEPEST:
            yield from _list_difference(before, after, path)
        case _ if not is_same(before, after):
            yield {"op": "replace", "path": path, "value": after}
        case _:
            pass


def is_same(one: object, other: object) -> bool:
    """Return True if two values are equal as JSON, regardless of the order of names. Distinguish 1 from true."""
    if one is _NOTHING or other is _NOTHING:
        return one is other
    return one == other and _encode(one) == _encode(other)


def _encode(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _list_difference(before: _Items, after: _Items, path: str) -> Iterator[PatchOperation]:
    """Yield operations on two lists.

    Equal items at both ends stay. Items in between are changed one by one, then the surplus items are removed or added.
    """
    shorter = min(len(before), len(after))
    first = next((place for place in range(shorter) if not is_same(before[place], after[place])), shorter)
    room = shorter - first
    last = next((end for end in range(room) if not is_same(before[-1 - end], after[-1 - end])), room)
    paired = first + room - last
    for place in range(first, paired):
        yield from _difference(before[place], after[place], _below(path, str(place)))
    for place in range(len(before) - last - 1, paired - 1, -1):
        yield {"op": "remove", "path": _below(path, str(place))}
    for place in range(paired, len(after) - last):
        yield {"op": "add", "path": _below(path, str(place)), "value": after[place]}


def _below(path: str, step: str) -> str:
    return f"{path}/{step.replace('~', '~0').replace('/', '~1')}"
