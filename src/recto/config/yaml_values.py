"""YAML reader that returns plain values with their lines. It rejects aliases, tags and duplicate names.

Words follow YAML 1.2: `true` and `false` are booleans; `yes`, `on` and dates are text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, TypeAlias, cast

import yaml

from recto.config.problem import Fault
from recto.conversation.json import Json, scrub

YamlPath: TypeAlias = tuple[str | int, ...]

DEEPEST = 32
LARGEST = 2**63 - 1
MAX_SHOWN = 60
WORDS: Mapping[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
END_OF_LINE = re.compile("\n")
WHOLE = re.compile(r"[-+]?[0-9]+")
DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# Syntax that the two YAML parsers treat differently.
TAKEN_OTHERWISE = re.compile("[\t?!\ufeff]|[|>]#")
QUOTES = "text with `: `, ` #` or a sign at its start goes in quotes"


@dataclass(frozen=True, kw_only=True)
class Values:
    """Values of a YAML text. `lines` maps the path of each value to its line, `names` that of each name.

    `unread` lists the paths of invalid values.
    """

    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    lines: Mapping[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    names: Mapping[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    faults: tuple[Fault, ...] = ()
    unread: tuple[YamlPath, ...] = ()


# An agent in two languages reads most of its files twice.
@lru_cache(maxsize=256)
def read_yaml(text: str, *, first_line: int) -> Values:
    """Return the values of a YAML mapping. Lines count from `first_line`; only `\\n` ends a line."""
    # One pass serves checks and values: parsing dominates the time.
    events: list[yaml.Event] = []
    lines = lines_of(text, first_line)
    faults = tuple(_check_events(text, lines, events))
    if faults:
        return Values(faults=faults)
    first_events = [
        event for event in events[:3] if not isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent)
    ]
    root = first_events[0]
    if isinstance(root, yaml.StreamEndEvent):
        return Values()
    if not isinstance(root, yaml.MappingStartEvent):
        line = lines.at(root.start_mark.index)
        return Values(faults=(Fault(line=line, text="settings are lines of `name: value`, and this is none."),))
    reading = _Reading(where=lines, events=iter(events[3:]))
    values = reading.mapping(())
    faults, unread = tuple(reading.faults), tuple(reading.unread)
    return Values(values=values, lines=reading.lines, names=reading.names, faults=faults, unread=unread)


def _check_events(text: str, lines: LineEnds, events: list[yaml.Event]) -> Iterator[Fault]:
    """Yield faults and collect events. No value is built yet, so none can grow."""
    # The parser checks that all text is printable before it starts.
    place = 0
    try:
        for event, place in parse(text):
            events.append(event)
            if problem := _refusal(event):
                yield Fault(line=lines.at(place), text=problem)
    except yaml.reader.ReaderError as error:
        problem = f"it is no YAML: the character U+{cast('int', error.character):04X} is not allowed here."
        yield Fault(line=lines.at(error.position), text=problem)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(filter(None, (error.context, error.problem)))
        yield Fault(line=lines.at(mark.index if mark else place), text=f"it is no YAML: {problem}; {QUOTES}.")
    except _TooMuch as error:
        yield Fault(line=lines.at(place), text=str(error))
    # An escape beyond the last character, or an invalid version number.
    except (ValueError, OverflowError):
        yield Fault(line=lines.at(place), text="it is no YAML: an escape or a number is too large.")


class _Parser(Protocol):
    """The used methods of a PyYAML loader, which is untyped."""

    def check_event(self) -> bool: ...
    def get_event(self) -> yaml.Event: ...


class _TooMuch(Exception):
    """Too many levels or documents."""


def parse(text: str) -> Iterator[tuple[yaml.Event, int]]:
    """Return events with their positions. The C parser, ten times as fast, reads what both parsers treat alike.

    The Python parser reports the errors.
    """
    if not TAKEN_OTHERWISE.search(text):
        with suppress(yaml.YAMLError, ValueError, OverflowError, _TooMuch):
            return iter(list(_events(cast("_Parser", yaml.CSafeLoader(text)))))
    return _events(cast("_Parser", yaml.SafeLoader(text)))


def _events(loader: _Parser) -> Iterator[tuple[yaml.Event, int]]:
    depth = documents = 0
    while loader.check_event():
        event = loader.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        yield event, event.start_mark.index
        if depth > DEEPEST:
            raise _TooMuch(f"it is nested more than {DEEPEST} levels deep.")
        if documents > 1:
            raise _TooMuch("`---` begins a second document here; settings are one. Take it out.")


def _refusal(event: yaml.Event) -> str | None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        return "`&` and `*` would name a value and repeat it; write it out, or put text in quotes."
    if getattr(event, "tag", None) is not None:
        return "`!` would give a value a type; write it plainly, or put text in quotes."
    return None


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """Builder of values from events; it records lines and faults."""

    where: LineEnds
    events: Iterator[yaml.Event]
    lines: dict[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    names: dict[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    faults: list[Fault] = field(default_factory=list[Fault])
    unread: list[YamlPath] = field(default_factory=list[YamlPath])

    def mapping(self, place: YamlPath) -> dict[str, Json]:
        values: dict[str, Json] = {}
        for event in iter(self._next, None):
            line = self._line(event)
            name = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else self._skip(event)
            if not isinstance(name, str):
                self._skip(next(self.events))
                self.faults.append(Fault(line=line, text="a name is text; put this one in quotes."))
            elif name in values:
                self._skip(next(self.events))
                first = self.names[(*place, name)]
                self.faults.append(
                    Fault(line=line, text=f"{name[:MAX_SHOWN]} is given twice; it is in line {first} too.")
                )
            else:
                self.names[(*place, name)] = line
                values[name] = self._value(next(self.events), (*place, name))
        return values

    def _next(self) -> yaml.Event | None:
        """Return the next event of a collection; None at its end."""
        event = next(self.events)
        return None if isinstance(event, yaml.CollectionEndEvent) else event

    def _skip(self, event: yaml.Event) -> None:
        depth = int(isinstance(event, yaml.CollectionStartEvent))
        while depth:
            event = next(self.events)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)

    def _value(self, event: yaml.Event, place: YamlPath) -> Json:
        self.lines[place] = self._line(event)
        match event:
            case yaml.MappingStartEvent():
                return self.mapping(place)
            case yaml.SequenceStartEvent():
                items = enumerate(iter(self._next, None))
                return [self._value(item, (*place, number)) for number, item in items]
            case _:
                fault_count = len(self.faults)
                value = self._scalar(cast("yaml.ScalarEvent", event))
                self.unread.extend([place] if len(self.faults) > fault_count else [])
                return value

    def _scalar(self, event: yaml.ScalarEvent) -> Json:
        try:
            return scalar(event)
        except OverflowError:
            fault = f"the number {cast('str', event.value)[:20]} is too large; put it in quotes if it is text."
            self.faults.append(Fault(line=self._line(event), text=fault))
            return 0

    def _line(self, event: yaml.Event) -> int:
        return self.where.at(event.start_mark.index)


def scalar(event: yaml.ScalarEvent) -> Json:
    """Return the value of a plain or quoted scalar. Raises OverflowError for a number that is too large."""
    text = scrub(cast("str", event.value))
    if event.style:
        return text
    if text in WORDS:
        return WORDS[text]
    if not DECIMAL.fullmatch(text):
        return text
    number = float(text)
    if math.isinf(number) or (WHOLE.fullmatch(text) and abs(number) >= LARGEST):
        raise OverflowError
    return int(text) if WHOLE.fullmatch(text) else number


@dataclass(frozen=True, kw_only=True)
class LineEnds:
    """Line ends of a text, and the number of its first line. YAML knows more line ends than editors do."""

    ends: Sequence[int]
    first: int

    def at(self, index: int) -> int:
        """Return the line of a character."""
        return self.first + bisect_left(self.ends, index)


def lines_of(text: str, first: int) -> LineEnds:
    """Return the line ends of a text."""
    return LineEnds(ends=tuple([end.start() for end in END_OF_LINE.finditer(text)]), first=first)
