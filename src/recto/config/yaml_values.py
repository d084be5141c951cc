"""YAML reader that returns plain values with their lines.

Words follow YAML 1.2: `true` and `false` are booleans; `yes`, `on` and dates are text. Aliases, tags and duplicate
names are faults. In files that others wrote, they are only warnings.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Protocol, TypeAlias, cast

import yaml

from recto.config.problem import Fault
from recto.conversation.json import Json, scrub

YamlPath: TypeAlias = tuple[str | int, ...]

MAX_DEPTH = 32
# Maximum number of values that aliases repeat in one text, because nested aliases grow exponentially.
MAX_ALIASED = 10_000
MAX_NUMBER = 2**63 - 1
MAX_SHOWN = 60
WORDS: Mapping[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
END_OF_LINE = re.compile("\n")
INTEGER = re.compile(r"[-+]?[0-9]+")
DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# Syntax that the C parser and the Python parser interpret differently.
DIFFERENT_SYNTAX = re.compile("[\t?!\ufeff]|[|>]#")
# A line that begins a setting: it is not indented, and its name is a single word.
SETTING = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63})[ \t]*:(?:[ \t]+(?P<rest>.*))?")
BLOCK = re.compile(r"[|>][-+0-9]*")
QUOTATION = re.compile(r"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"")
AS_TEXT = "{name} is not valid YAML, so its value is read as text. Put it in quotes."
QUOTES = "text with `: `, ` #` or a sign at its start goes in quotes"


@dataclass(frozen=True, kw_only=True)
class Values:
    """Values of a YAML text.

    `lines` maps the path of each value to its line; `names` maps the same path to the line of the name. `unread` lists
    the paths of invalid values.
    """

    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    lines: Mapping[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    names: Mapping[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    unread: tuple[YamlPath, ...] = ()


# Cached, because an agent in two languages reads most of its files twice.
@lru_cache(maxsize=256)
def read_yaml(text: str, *, first_line: int, strict: bool = True) -> Values:
    """Return the values of a YAML mapping. Lines count from `first_line`; only `\\n` ends a line.

    Without `strict`, faults become warnings. If the text as a whole is not YAML, each setting is read by itself.
    """
    read = _read_mapping(text, first_line, strict=strict)
    if strict or not read.faults:
        return read
    values, lines, names = dict[str, Json](), dict[YamlPath, int](), dict[YamlPath, int]()
    warnings: list[Fault] = []
    for name, line, part in _split_settings(text, first_line):
        if name in values:
            continue
        setting = _read_mapping(part, line, strict=False)
        if setting.faults:
            setting = Values(values={name: _read_text(part)}, lines={(name,): line}, names={(name,): line})
            warnings.append(Fault(line=line, text=AS_TEXT.format(name=name)))
        warnings += setting.warnings
        values |= setting.values
        lines |= setting.lines
        names |= setting.names
    return Values(values=values, lines=lines, names=names, warnings=tuple(warnings) or read.faults)


def _read_mapping(text: str, first_line: int, *, strict: bool) -> Values:
    """Return the values of a whole text, or only faults.

    Without `strict`, a fault that leaves the values readable is a warning.
    """
    # Use one pass for checks and values, because parsing takes most of the time.
    events: list[yaml.Event] = []
    line_ends = LineEnds(ends=tuple([end.start() for end in END_OF_LINE.finditer(text)]), first=first_line)
    faults = tuple(_check_events(text, line_ends, events))
    is_complete = bool(events) and isinstance(events[-1], yaml.StreamEndEvent)
    if faults and (strict or not is_complete):
        return Values(faults=faults)
    root, *others = [
        event for event in events if not isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent)
    ]
    if isinstance(root, yaml.StreamEndEvent):
        return Values()
    if not isinstance(root, yaml.MappingStartEvent):
        line = line_ends.line_at(root.start_mark.index)
        return Values(faults=(Fault(line=line, text="settings are lines of `name: value`, and this is not one."),))
    builder = _ValueBuilder(line_ends=line_ends, events=iter(others))
    try:
        values = builder.mapping(())
    except _BadAlias:
        return Values(faults=faults)
    read = Values(values=values, lines=builder.lines, names=builder.names)
    if strict:
        return replace(read, faults=tuple(builder.faults), unread=tuple(builder.unread))
    return replace(read, warnings=faults or tuple(builder.faults))


def _check_events(text: str, line_ends: LineEnds, events: list[yaml.Event]) -> Iterator[Fault]:
    """Yield faults and collect events.

    Do not build values yet, because nested aliases would make them grow exponentially.
    """
    # Position of the newest event. It stays 0 if the parser finds an unprintable character, which it checks first.
    index = 0
    try:
        for event, index in parse(text):
            events.append(event)
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
                problem = "`&` and `*` would name a value and repeat it; write it out, or put text in quotes."
                yield Fault(line=line_ends.line_at(index), text=problem)
            elif getattr(event, "tag", None) is not None:
                problem = "`!` would give a value a type; write it plainly, or put text in quotes."
                yield Fault(line=line_ends.line_at(index), text=problem)
    except yaml.reader.ReaderError as error:
        problem = f"it is not YAML: the character U+{cast('int', error.character):04X} is not allowed here."
        yield Fault(line=line_ends.line_at(error.position), text=problem)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(filter(None, (error.context, error.problem)))
        line = line_ends.line_at(mark.index if mark else index)
        yield Fault(line=line, text=f"it is not YAML: {problem}; {QUOTES}.")
    except _LimitExceeded as error:
        yield Fault(line=line_ends.line_at(index), text=str(error))
    # Raised for an escape beyond the last character, or an invalid version number.
    except (ValueError, OverflowError):
        yield Fault(line=line_ends.line_at(index), text="it is not YAML: an escape or a number is too large.")


class _Parser(Protocol):
    """The methods of a PyYAML loader that are used here, because PyYAML has no types."""

    def check_event(self) -> bool: ...
    def get_event(self) -> yaml.Event: ...


class _LimitExceeded(Exception):
    """Raised for too many levels or documents."""


class _BadAlias(Exception):
    """Raised for an alias to an unknown value, or to more values or levels than allowed."""


def parse(text: str) -> Iterator[tuple[yaml.Event, int]]:
    """Return events with their positions.

    The C parser is ten times as fast; it reads syntax that both parsers interpret alike. The Python parser reads other
    syntax and reports the errors.
    """
    if not DIFFERENT_SYNTAX.search(text):
        with suppress(yaml.YAMLError, ValueError, OverflowError, _LimitExceeded):
            return iter(list(_read_events(cast("_Parser", yaml.CSafeLoader(text)))))
    return _read_events(cast("_Parser", yaml.SafeLoader(text)))


def _read_events(loader: _Parser) -> Iterator[tuple[yaml.Event, int]]:
    depth = documents = 0
    while loader.check_event():
        event = loader.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        yield event, event.start_mark.index
        if depth > MAX_DEPTH:
            raise _LimitExceeded(f"it is nested more than {MAX_DEPTH} levels deep.")
        if documents > 1:
            raise _LimitExceeded("`---` begins a second document; settings are one document. Remove it.")


@dataclass(kw_only=True)
class _ValueBuilder:
    """Builder of values from events; it records lines and faults."""

    line_ends: LineEnds
    events: Iterator[yaml.Event]
    lines: dict[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    names: dict[YamlPath, int] = field(default_factory=dict[YamlPath, int])
    faults: list[Fault] = field(default_factory=list[Fault])
    unread: list[YamlPath] = field(default_factory=list[YamlPath])
    anchors: dict[str, Json] = field(default_factory=dict[str, Json])
    aliased: int = 0

    def mapping(self, path: YamlPath) -> dict[str, Json]:
        """Return the mapping whose start was the last event."""
        values: dict[str, Json] = {}
        for event in iter(self._next, None):
            line = self._line(event)
            if not isinstance(event, yaml.ScalarEvent):
                self._skip(event)
                self._skip(next(self.events))
                self.faults.append(Fault(line=line, text="a name is text; put this one in quotes."))
                continue
            name = scrub(cast("str", event.value))
            if name in values:
                self._skip(next(self.events))
                text = f"{name[:MAX_SHOWN]} is given twice; it is in line {self.names[(*path, name)]} too."
                self.faults.append(Fault(line=line, text=text))
                continue
            if not isinstance(self._scalar(event, (*path, name)), str):
                self.faults.append(Fault(line=line, text="a name is text; put this one in quotes."))
                self.unread.append((*path, name))
            self.names[(*path, name)] = line
            values[name] = self._value(next(self.events), (*path, name))
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

    def _value(self, event: yaml.Event, path: YamlPath) -> Json:
        self.lines[path] = self._line(event)
        anchor = cast("str", getattr(event, "anchor", None))
        match event:
            case yaml.AliasEvent():
                # An alias inside its own value is unknown here, because the anchor is stored after the value.
                if anchor not in self.anchors:
                    raise _BadAlias
                count, levels = _measure(self.anchors[anchor])
                self.aliased += count
                if self.aliased > MAX_ALIASED or len(path) + levels > MAX_DEPTH:
                    raise _BadAlias
                return self.anchors[anchor]
            case yaml.MappingStartEvent():
                value = self.mapping(path)
            case yaml.SequenceStartEvent():
                items = enumerate(iter(self._next, None))
                value = [self._value(item, (*path, number)) for number, item in items]
            case _:
                value = self._scalar(cast("yaml.ScalarEvent", event), path)
        if anchor:
            self.anchors[anchor] = value
        return value

    def _scalar(self, event: yaml.ScalarEvent, path: YamlPath) -> Json:
        """Return the value of a plain or quoted scalar. A number that is too large becomes text, with a fault."""
        text = scrub(cast("str", event.value))
        if event.style:
            return text
        if text in WORDS:
            return WORDS[text]
        if not DECIMAL.fullmatch(text):
            return text
        number = float(text)
        if math.isinf(number) or (INTEGER.fullmatch(text) and abs(number) >= MAX_NUMBER):
            fault = f"the number {text[:20]} is too large; put it in quotes if it is text."
            self.faults.append(Fault(line=self._line(event), text=fault))
            self.unread.append(path)
            return text
        return int(text) if INTEGER.fullmatch(text) else number

    def _line(self, event: yaml.Event) -> int:
        return self.line_ends.line_at(event.start_mark.index)


def _measure(value: Json) -> tuple[int, int]:
    """Return the number of values in a value, including the value itself, and the number of levels."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    sizes = [_measure(item) for item in items]
    return 1 + sum(count for count, _ in sizes), max((levels + 1 for _, levels in sizes), default=0)


@dataclass(frozen=True, kw_only=True)
class LineEnds:
    """Line ends of a text, and the number of its first line.

    YAML recognises more line ends than editors do.
    """

    ends: Sequence[int]
    first: int

    def line_at(self, index: int) -> int:
        """Return the line of a character."""
        return self.first + bisect_left(self.ends, index)


def _split_settings(text: str, first_line: int) -> Iterator[tuple[str, int, str]]:
    """Yield the name, line and text of each setting that begins a line."""
    lines = text.split("\n")
    starts = [(number, match["name"]) for number, line in enumerate(lines) if (match := SETTING.fullmatch(line))]
    for (start, name), (end, _) in pairwise([*starts, (len(lines), "")]):
        yield name, first_line + start, "\n".join(lines[start:end])


def _read_text(setting: str) -> str | None:
    """Return the value of a setting as text, without enclosing quotes."""
    first, *more = setting.split("\n")
    rest = first.partition(":")[2].strip()
    is_block = BLOCK.fullmatch(rest) is not None
    lines = [line.strip() for line in ([] if is_block else [rest]) + more if line.strip()]
    text = scrub(("\n" if is_block else " ").join(lines))
    quotation = QUOTATION.fullmatch(text)
    return (quotation["single"] or quotation["double"] if quotation else text) or None
