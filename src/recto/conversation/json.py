"""Canonical JSON encoding, and typed access to the fields of outside JSON.

Equal values give equal bytes on every platform. A field of the wrong type raises a WireError that names it.
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
    """Encode a value as compact JSON with its keys in order. Unpaired surrogates become U+FFFD.

    NaN and infinity become null. Integers of any length keep all their digits.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return orjson.dumps(_scrubbed(value))
    except (TypeError, ValueError, RecursionError) as error:
        # Python rejects integers with thousands of digits.
        raise WireError(where="JSON", problem=f"cannot be written: {error}") from error


def load(text: str | bytes) -> Json:
    """Decode a JSON text. Raise ValueError if it is invalid."""
    return cast("Json", orjson.loads(text))


def load_object(text: str | bytes) -> Mapping[str, Json] | None:
    """Decode a JSON object. Return None for anything else."""
    try:
        value = load(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def leading_object(text: str) -> Mapping[str, Json] | None:
    """Decode the JSON object in a text, or in its first line if a person or Recto added text. Return None if none."""
    return load_object(text) or load_object(text.partition("\n")[0]) if text.startswith("{") else None


def parts_of(value: Json) -> Iterable[Json]:
    """Return the values directly inside a JSON value."""
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def verbatim(text: str) -> object:
    """Wrap a JSON text so that `dump` embeds it without parsing it."""
    return orjson.Fragment(scrub(text))


def copy_text(text: str) -> str:
    """Return a throwaway copy of a non-ASCII text, because Python caches the UTF-8 form inside an encoded string."""
    return text if text.isascii() else "".join((text, ""))


def scrub(text: str) -> str:
    """Replace unpaired surrogates, so that the text can be encoded as UTF-8."""
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


# Readers of fields in untrusted JSON


def as_object(value: Json, where: str) -> Object:
    """Return the value if it is an object. Raise a WireError otherwise."""
    if isinstance(value, Mapping):
        return value
    raise WireError(where=where, problem=f"must be an object, is {kind_of(value)}")


def as_list(value: Json, where: str) -> Sequence[Json]:
    """Return the value if it is an array. Raise a WireError otherwise."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise WireError(where=where, problem=f"must be an array, is {kind_of(value)}")


def objects(value: Json, where: str) -> Iterator[tuple[str, Object]]:
    """Yield the objects of an array, each with its path for error messages."""
    for index, item in enumerate(as_list(value, where)):
        place = f"{where}[{index}]"
        yield place, as_object(item, place)


def text_field(value: Object, name: str, where: str) -> str:
    """Return a required string field."""
    text = optional_text(value, name, where)
    if text is None:
        raise WireError(where=f"{where}.{name}", problem="is missing; a string is needed")
    return text


def optional_text(value: Object, name: str, where: str) -> str | None:
    """Return a string field, or None if it is absent or null."""
    text = value.get(name)
    if text is None:
        return None
    if isinstance(text, str):
        return scrub(text)
    raise WireError(where=f"{where}.{name}", problem=f"must be a string, is {kind_of(text)}")


def optional_time(value: Object, name: str, where: str) -> datetime | None:
    """Return a time field: milliseconds since 1970, or ISO 8601, in UTC if it has no zone."""
    time = value.get(name)
    if time is None:
        return None
    try:
        if isinstance(time, (int, float)) and not isinstance(time, bool):
            return EPOCH + timedelta(milliseconds=time)
        if isinstance(time, str):
            return parse_time(time)
    except (ValueError, OverflowError):
        pass
    raise WireError(where=f"{where}.{name}", problem=f"must be milliseconds since 1970 or ISO 8601, is {time!r}")


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 time, in UTC if it has no zone. Raise ValueError for anything else."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def kind_of(value: Json) -> str:
    """Return the JSON type of a value, with its article, for error messages."""
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
