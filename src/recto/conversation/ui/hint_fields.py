"""Fields of hints (P14), each taken only as what it should be, else refused with a WireError that says why."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeGuard

from recto.conversation.json import Json
from recto.conversation.ui.safe_text import plain_text
from recto.errors import WireError

Hints: TypeAlias = Mapping[str, object]
Node: TypeAlias = dict[str, Json]

# Whole numbers beyond this are not the same in every JSON reader.
LARGEST = 2**53 - 1
EMPTY: tuple[object, ...] = ("", [], (), {})


def is_given(hints: Hints, name: str) -> bool:
    """Whether the hint says anything: nothing, false and what is empty do not."""
    value = hints.get(name)
    return value is not None and value is not False and value not in EMPTY


def is_object(value: object) -> TypeGuard[Hints]:
    """Whether the value is an object. That its keys are texts is known of hints once they were looked through."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether the value is a list."""
    return isinstance(value, list | tuple)


def an_object(value: object, where: str) -> Hints:
    """The value as an object."""
    if not is_object(value):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of an object")
    return value


def a_list(value: object, where: str) -> Sequence[object]:
    """The value as a list."""
    if not is_list(value):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a list")
    return value


def a_string(value: object, where: str) -> str:
    """The value as the text it is, not yet safe to show."""
    if not isinstance(value, str):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a text")
    return value


def a_number(value: object, where: str) -> int | float:
    """The value as a number that is the same in every JSON reader."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WireError(where=where, problem=f"{type(value).__name__} instead of a number")
    if abs(value) > LARGEST if isinstance(value, int) else not math.isfinite(value):
        raise WireError(where=where, problem="a number JSON cannot carry everywhere")
    return value


def a_scalar(value: object) -> Json:
    """The value of a cell or a field: words, a number, yes or no, or nothing."""
    if value is None or isinstance(value, bool):
        return value
    return plain_text(value) if isinstance(value, str) else a_number(value, "a value")


def words(hints: Hints, name: str) -> str:
    """Words to show."""
    return plain_text(a_string(hints.get(name), name))


def choice(hints: Hints, name: str, allowed: Sequence[str]) -> str:
    """One of the words allowed."""
    value = hints.get(name)
    if not isinstance(value, str) or value not in allowed:
        raise WireError(where=name, problem=f"{value!r} is none of {', '.join(allowed)}")
    return value


def url(hints: Hints, is_safe: Callable[[str], bool]) -> str:
    """The url, where it is safe."""
    value = a_string(hints.get("url"), "url")
    if not is_safe(value):
        raise WireError(where="url", problem=f"{value!r} leads where no hint may lead")
    return value


def optional_choice(hints: Hints, name: str, allowed: Sequence[str]) -> Node:
    """The field with one of the words allowed, or no field."""
    return {name: choice(hints, name, allowed)} if hints.get(name) is not None else {}


def optional_words(hints: Hints, name: str) -> Node:
    """The field with words to show, or no field."""
    return {name: words(hints, name)} if hints.get(name) is not None else {}


def optional_flag(hints: Hints, name: str) -> Node:
    """The field with yes or no, or no field."""
    value = hints.get(name)
    if value is not None and not isinstance(value, bool):
        raise WireError(where=name, problem=f"{type(value).__name__} instead of true or false")
    return {} if value is None else {name: value}
