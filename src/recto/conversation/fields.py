"""Reading fields of outside JSON: the right type or a WireError that names the field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from recto.conversation.json import Json, scrub
from recto.conversation.messages import Data, Source, Url
from recto.errors import WireError

Object = Mapping[str, Json]

DATA_URL = re.compile(r"data:(?P<mime>[^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def source_from_url(url: str) -> tuple[Source, str | None]:
    """Where a file is: a data url is its bytes, with their type; anything else is an address."""
    found = DATA_URL.match(url)
    if found:
        return Data(base64=url[found.end() :]), found["mime"] or None
    return Url(url=url), None


def data_url(source: Data, mime_type: str | None) -> str:
    """The bytes of a file as a data url."""
    return f"data:{mime_type or 'application/octet-stream'};base64,{source.base64}"


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
