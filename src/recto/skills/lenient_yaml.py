"""YAML as public skills have it: values may be named and repeated, typed, or text that is no YAML at all.

Refuses to make anything but plain values of it, or more of them than a few thousand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast

import yaml

from recto.config.problem import Fault
from recto.config.yaml_values import DEEPEST, LineEnds, Values, YamlPath, lines_of, scalar
from recto.conversation.json import Json, scrub

MOST_VALUES = 10_000
# A line that begins a setting: it is not indented, and its name is a word.
SETTING = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63})[ \t]*:(?:[ \t]+(?P<rest>.*))?")
BLOCK = re.compile(r"[|>][-+0-9]*")
QUOTED = re.compile(r"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"")
AS_TEXT = "{name} is no YAML, so what stands there is taken as text. Put it in quotes."


class Lenient(NamedTuple):
    """What was made of a text that is no YAML, or not such as we take; a warning for each value that was guessed."""

    values: Values
    warnings: tuple[Fault, ...] = ()


def read_lenient(text: str, *, first_line: int) -> Lenient:
    """The settings of a text, whatever it is. What is no YAML as a whole is read one setting at a time."""
    whole = _read(text, first_line)
    return _by_setting(text, first_line) if whole is None else Lenient(whole)


def _read(text: str, first_line: int) -> Values | None:
    """The values of a mapping in YAML; None where it is none."""
    try:
        reading = _Reading(where=lines_of(text, first_line), parser=cast("_Parser", yaml.SafeLoader(text)))
        values = reading.settings()
    # An escape beyond the last character is a ValueError or an OverflowError.
    except (yaml.YAMLError, _NotTaken, ValueError, OverflowError):
        return None
    return Values(values=values, lines=reading.lines, names=reading.names)


class _Parser(Protocol):
    """What is used of a loader, whose own types are not known."""

    def get_event(self) -> yaml.Event: ...
    def peek_event(self) -> yaml.Event: ...


class _NotTaken(Exception):
    """No mapping, a name that is none, a value nobody named, or more than is taken."""


class _Named(NamedTuple):
    """A value that may be repeated: how many values it holds, and how many levels."""

    value: Json
    size: int
    levels: int


@dataclass(kw_only=True)
class _Reading:
    """Events become values. A value that is repeated counts as often as it stands there."""

    where: LineEnds
    parser: _Parser
    size: int = 0
    deepest: int = 0
    lines: dict[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    names: dict[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    named: dict[str, _Named] = field(default_factory=dict[str, _Named])

    def settings(self) -> dict[str, Json]:
        self.parser.get_event()
        if not isinstance(self.parser.get_event(), yaml.DocumentStartEvent):
            return {}
        values = self._value(())
        self.parser.get_event()
        if not isinstance(values, dict) or not isinstance(self.parser.get_event(), yaml.StreamEndEvent):
            raise _NotTaken
        return values

    def _value(self, place: YamlPath) -> Json:
        event = self.parser.get_event()
        if place:
            self.lines[place] = self._line(event)
        if isinstance(event, yaml.AliasEvent):
            return self._again(cast("str", event.anchor), place)
        size, outer = self.size, self.deepest
        self.deepest = 0
        self._count(1, len(place))
        value = self._built(event, place)
        if anchor := cast("str | None", getattr(event, "anchor", None)):
            self.named[anchor] = _Named(value, self.size - size, self.deepest - len(place))
        self.deepest = max(self.deepest, outer)
        return value

    def _built(self, event: yaml.Event, place: YamlPath) -> Json:
        match event:
            case yaml.MappingStartEvent():
                return self._mapping(place)
            case yaml.SequenceStartEvent():
                return self._sequence(place)
            case _:
                return _scalar(cast("yaml.ScalarEvent", event))

    def _mapping(self, place: YamlPath) -> dict[str, Json]:
        found: dict[str, Json] = {}
        while not isinstance(self.parser.peek_event(), yaml.MappingEndEvent):
            event = self.parser.get_event()
            if not isinstance(event, yaml.ScalarEvent):
                raise _NotTaken
            name = scrub(cast("str", event.value))
            self.names.setdefault((*place, name), self._line(event))
            # The first of a name stands; the place of another is one that nobody asks for.
            inner = (*place, name) if name not in found else (*place, name, name)
            found.setdefault(name, self._value(inner))
        self.parser.get_event()
        return found

    def _sequence(self, place: YamlPath) -> list[Json]:
        found: list[Json] = []
        while not isinstance(self.parser.peek_event(), yaml.SequenceEndEvent):
            found.append(self._value((*place, len(found))))
        self.parser.get_event()
        return found

    def _again(self, anchor: str, place: YamlPath) -> Json:
        named = self.named.get(anchor)
        if named is None:
            raise _NotTaken
        self._count(named.size, len(place) + named.levels)
        return named.value

    def _count(self, size: int, depth: int) -> None:
        self.size += size
        self.deepest = max(self.deepest, depth)
        if self.size > MOST_VALUES or depth > DEEPEST:
            raise _NotTaken

    def _line(self, event: yaml.Event) -> int:
        return self.where.at(event.start_mark.index)


def _scalar(event: yaml.ScalarEvent) -> Json:
    """As elsewhere, but that a number too large for one is text."""
    try:
        return scalar(event)
    except OverflowError:
        return scrub(cast("str", event.value))


class _Setting(NamedTuple):
    """A setting as it stands in the text: its name, its line, and its lines."""

    name: str
    line: int
    text: str


def _by_setting(text: str, first_line: int) -> Lenient:
    """Each setting by itself: one that is no YAML is text, and the others stay what they are."""
    values: dict[str, Json] = {}
    lines: dict[YamlPath, int] = {}
    names: dict[YamlPath, int] = {}
    warnings: list[Fault] = []
    for setting in _settings(text, first_line):
        if setting.name in values:
            continue
        found = _read(setting.text, setting.line)
        if found is None:
            found = Values(values={setting.name: _plain(setting)}, lines={(setting.name,): setting.line})
            warnings.append(Fault(line=setting.line, text=AS_TEXT.format(name=setting.name)))
        values.update(found.values)
        lines.update(found.lines)
        names.update({(setting.name,): setting.line, **found.names})
    return Lenient(Values(values=values, lines=lines, names=names), tuple(warnings))


def _settings(text: str, first_line: int) -> Iterator[_Setting]:
    begun: tuple[str, int] | None = None
    gathered: list[str] = []
    for number, line in enumerate(text.split("\n"), start=first_line):
        if match := SETTING.fullmatch(line):
            if begun:
                yield _Setting(*begun, "\n".join(gathered))
            begun, gathered = (match["name"], number), []
        if begun:
            gathered.append(line)
    if begun:
        yield _Setting(*begun, "\n".join(gathered))


def _plain(setting: _Setting) -> Json:
    first, *more = setting.text.split("\n")
    match = SETTING.fullmatch(first)
    rest = (match["rest"] or "").strip() if match else ""
    is_block = BLOCK.fullmatch(rest) is not None
    kept = [line.strip() for line in ([] if is_block else [rest]) + more if line.strip()]
    text = scrub(("\n" if is_block else " ").join(kept))
    quoted = QUOTED.fullmatch(text)
    return (quoted["single"] or quoted["double"] if quoted else text) or None
