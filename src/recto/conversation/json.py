"""JSON, one way: the same value gives the same bytes on every platform and run; and its fields, each of the right type.

A field of outside JSON that is of another type raises a WireError that names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, cast

import orjson

from recto.errors import WireError

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
Object: TypeAlias = Mapping[str, Json]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def dump(value: object) -> bytes:
    """The value as compact JSON, keys in the order given. Halves of broken surrogate pairs become U+FFFD.

    Numbers without end or sense (NaN) become null; whole ones of any length stand with all their digits.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return orjson.dumps(_scrubbed(value))
    except (TypeError, ValueError, RecursionError) as error:
        # Python itself refuses to write numbers of thousands of digits.
        raise WireError(where="JSON", problem=f"cannot be written: {error}") from error


def load(text: str | bytes) -> Json:
    """The value of a JSON text; raises ValueError when it is none."""
    return cast("Json", orjson.loads(text))


def load_object(text: str | bytes) -> Mapping[str, Json] | None:
    """The object a JSON text holds, or None when it is no JSON or no object."""
    try:
        value = load(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def leading_object(text: str) -> Mapping[str, Json] | None:
    """The object a text is or has for its first line: behind it may stand what a person or we said of a result."""
    return load_object(text) or load_object(text.partition("\n")[0]) if text.startswith("{") else None


def parts_of(value: Json) -> Iterable[Json]:
    """What a JSON value holds, one level down."""
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def verbatim(text: str) -> object:
    """A JSON text to be placed in a larger one as it stands, not parsed and written again."""
    return orjson.Fragment(scrub(text))


def copied(text: str) -> str:
    """The text, or a copy of it to be thrown away: in a text of more than ASCII its UTF-8 form stays once it was asked
    for, and takes as much memory again.
    """
    return text if text.isascii() else "".join((text, ""))


def scrub(text: str) -> str:
    """The text with halves of broken surrogate pairs replaced, so that it has a UTF-8 form."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _scrubbed(value: object) -> object:
    match value:
        case str():
            return scrub(value)
        case int() if not -(2**63) <= value < 2**64:
            return orjson.Fragment(str(value))
        case dict():
            pairs = cast("dict[str, object]", value)
            return {scrub(key): _scrubbed(inner) for key, inner in pairs.items()}
        case list() | tuple():
            return [_scrubbed(inner) for inner in cast("Sequence[object]", value)]
        case _:
            return value


# Fields of outside JSON


def as_object(value: Json, where: str) -> Object:
    """The value as an object."""
    if isinstance(value, Mapping):
        return value
    raise WireError(where=where, problem=f"must be an object, is {kind_of(value)}")


def as_list(value: Json, where: str) -> Sequence[Json]:
    """The value as an array."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise WireError(where=where, problem=f"must be an array, is {kind_of(value)}")


def objects(value: Json, where: str) -> Iterator[tuple[str, Object]]:
    """The objects of an array, each with the name of its place."""
    for index, item in enumerate(as_list(value, where)):
        place = f"{where}[{index}]"
        yield place, as_object(item, place)


def text_field(value: Object, name: str, where: str) -> str:
    """A string that must be there."""
    found = optional_text(value, name, where)
    if found is None:
        raise WireError(where=f"{where}.{name}", problem="is missing; a string is needed")
    return found


def optional_text(value: Object, name: str, where: str) -> str | None:
    """A string, or None where it is absent or null."""
    found = value.get(name)
    if found is None:
        return None
    if isinstance(found, str):
        return scrub(found)
    raise WireError(where=f"{where}.{name}", problem=f"must be a string, is {kind_of(found)}")


def optional_time(value: Object, name: str, where: str) -> datetime | None:
    """A time: milliseconds since 1970, or ISO 8601 (UTC where it names no zone)."""
    found = value.get(name)
    if found is None:
        return None
    try:
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return EPOCH + timedelta(milliseconds=found)
        if isinstance(found, str):
            return parse_time(found)
    except (ValueError, OverflowError):
        pass
    raise WireError(where=f"{where}.{name}", problem=f"must be milliseconds since 1970 or ISO 8601, is {found!r}")


def parse_time(text: str) -> datetime:
    """An ISO 8601 time, in UTC where it names no zone; ValueError when it is none."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def kind_of(value: Json) -> str:
    """What JSON calls the type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case _:
            return "an array"
