"""The fields of a birth as they are given: texts, flags, numbers, one of several. Refuses what is none of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from recto.errors import ToolError
from recto.page.canonical import Json

Choice = TypeVar("Choice", bound=str)


def text_in(info: Mapping[str, Json], name: str) -> str:
    """A text without blanks around it; empty where there is none."""
    value = info.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    raise ToolError(f"{name} {value!r} is no text. Give it as text.")


def flag_in(info: Mapping[str, Json], name: str) -> bool | None:
    """Yes, no, or None where nothing is said."""
    value = info.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise ToolError(f"{name} {value!r} is neither true nor false. Give one of these.")


def choice_in(info: Mapping[str, Json], name: str, known: Mapping[str, Choice]) -> Choice | None:
    """What a word stands for, in any case of its letters; None where nothing is said."""
    text = text_in(info, name).lower()
    if text and text not in known:
        allowed = ", ".join(dict.fromkeys(known.values()))
        raise ToolError(f"{name} {text!r} is not known. Give one of: {allowed}.")
    return known[text] if text else None


def coordinates_in(info: Mapping[str, Json]) -> tuple[float, float] | None:
    """Latitude and longitude in degrees; None where neither is given."""
    latitude, longitude = _degrees(info, "latitude", 90), _degrees(info, "longitude", 180)
    if (latitude is None) != (longitude is None):
        raise ToolError("Latitude and longitude belong together. Give both, or neither and a `place`.")
    return None if latitude is None or longitude is None else (latitude, longitude)


def _degrees(info: Mapping[str, Json], name: str, limit: int) -> float | None:
    value = info.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else limit + 1.0
    except ValueError:
        number = limit + 1.0
    if not -limit <= number <= limit:
        raise ToolError(f"{name} {value!r} is no number of degrees. Give one from -{limit} to {limit}.")
    return number
