"""Changes of JSON values: places by JSON Pointer (RFC 6901), differences as JSON Patch (RFC 6902). Edits nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from recto.conversation.json import Json, dump, load
from recto.errors import WireError

PatchOperation: TypeAlias = Mapping[str, Json]
_Steps: TypeAlias = Sequence[str]
_Items: TypeAlias = list[Json]
_Members: TypeAlias = dict[str, Json]

# What is nested deeper is changed as a whole: this is looked through by recursion.
DEEPEST = 32
LAST = "-"
NO_POINTER = "is no JSON Pointer; it is empty for the whole, else /name/0/name"
TOO_DEEP = f"leads more than {DEEPEST} deep; make the value flatter"


@dataclass(frozen=True, kw_only=True)
class ValueChange:
    """What is to stand at a place of a value, as JSON text; None: nothing, not even null."""

    path: str
    value: str | None = None


def value_at(whole: Json, path: str) -> Json:
    """What stands at a place; None where there is nothing."""
    found = whole
    for step in _steps(path):
        match found:
            case dict():
                found = found.get(step)
            case list() if _index(step, len(found)) is not None:
                found = found[int(step)]
            case _:
                return None
    return found


def changed(whole: Json, change: ValueChange) -> Json:
    """The value with that change. Objects on the way to a new value are made; one in the way raises a WireError."""
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
    """The place in a list that a step names; None where there is no such item."""
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
    """The value without what stands at a place. Where nothing does, it stays as it is."""
    if not steps:
        return None
    step, rest = steps[0], steps[1:]
    match value:
        case dict() if step in value:
            kept = {name: one for name, one in value.items() if name != step}
            return {**value, step: _without(value[step], rest)} if rest else kept
        case list() if (place := _index(step, len(value))) is not None:
            return [*value[:place], *([_without(value[place], rest)] if rest else []), *value[place + 1 :]]
        case _:
            return value


def difference(before: Json, after: Json) -> list[PatchOperation]:
    """The operations that make one value of the other, in their order. None of them: they are the same."""
    return list(_difference(before, after, ""))


def _difference(before: Json, after: Json, path: str) -> Iterator[PatchOperation]:
    match before, after:
        case (dict(), dict()) if path.count("/") < DEEPEST:
            yield from _of_objects(before, after, path)
        case (list(), list()) if path.count("/") < DEEPEST:
            yield from _of_lists(before, after, path)
        case _ if not is_same(before, after):
            yield {"op": "replace", "path": path, "value": after}
        case _:
            pass


def is_same(one: Json, other: Json) -> bool:
    """Whether two values are written alike, whatever the order of names. Python takes 1 and true for equal."""
    return one == other and _written(one) == _written(other)


def _written(value: Json) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _of_objects(before: _Members, after: _Members, path: str) -> Iterator[PatchOperation]:
    for name in [name for name in before if name not in after]:
        yield {"op": "remove", "path": _below(path, name)}
    for name, value in after.items():
        if name in before:
            yield from _difference(before[name], value, _below(path, name))
        else:
            yield {"op": "add", "path": _below(path, name), "value": value}


def _of_lists(before: _Items, after: _Items, path: str) -> Iterator[PatchOperation]:
    """What is the same at both ends stays; of the rest, item by item is changed, then some are added or removed."""
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
