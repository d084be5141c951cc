"""JSON, one way: the same value gives the same bytes on every platform and run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

import orjson

from recto.errors import WireError

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


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
