"""Standard procedures (S7): ordered steps with conditions on what is known, and the text that tells the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from recto.page.canonical import Json


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Nothing is known at this path."""

    path: str


@dataclass(frozen=True, kw_only=True)
class Has:
    """Something is known at this path."""

    path: str


@dataclass(frozen=True, kw_only=True)
class Equals:
    """What is known at this path is this."""

    path: str
    value: Json


@dataclass(frozen=True, kw_only=True)
class Differs:
    """Both paths are known and hold different things: what was made of the one is not of it any more."""

    path: str
    other: str


@dataclass(frozen=True, kw_only=True)
class AllOf:
    """All of these hold."""

    of: tuple[Condition, ...]


@dataclass(frozen=True, kw_only=True)
class AnyOf:
    """One of these holds."""

    of: tuple[Condition, ...]


@dataclass(frozen=True, kw_only=True)
class Not:
    """This does not hold."""

    of: Condition


Condition: TypeAlias = Missing | Has | Equals | Differs | AllOf | AnyOf | Not


@dataclass(frozen=True, kw_only=True)
class SopStep:
    """A step, due where its condition holds; without one it always is. `text` says what the model is to do."""

    id: str
    title: str
    text: str
    when: Condition | None = None


@dataclass(frozen=True, kw_only=True)
class Sop:
    """Steps in order: the first that is due is the next. `rules` hold in all of them, `tool_rules` are about tools."""

    steps: tuple[SopStep, ...] = ()
    rules: str = ""
    tool_rules: str = ""
