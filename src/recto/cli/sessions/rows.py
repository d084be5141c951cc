"""JSON and JSON Lines parsing, independent of session formats.

Tolerates defects of real files: byte order marks, UTF-16, lone surrogates, an incomplete last line.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from recto.conversation.json import Json, Object, dump, kind_of, load
from recto.errors import NotAConversation, WireError

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b\x08": "gzip"}
LARGEST_INTEGER = 2**63
TOO_DEEP = "it is nested more than 250 levels deep"


@dataclass(frozen=True, kw_only=True)
class SessionRow:
    """An object with its line number, from 1."""

    number: int
    fields: Object

    @property
    def where(self) -> str:
        """Location for error messages."""
        return f"line {self.number}"


@dataclass(frozen=True, kw_only=True)
class JsonLines:
    """JSON Lines. `cut` is the number of an incomplete last line, which is dropped."""

    rows: tuple[SessionRow, ...]
    cut: int | None = None


def parse(data: bytes, *, source: str) -> Json | JsonLines:
    """Parse a file. Raise NotAConversation if it is not JSON."""
    if data.startswith(UTF16_MARKS):
        data = data.decode("utf-16", "replace").encode()
    for mark, name in COMPRESSED.items():
        if data.startswith(mark):
            raise NotAConversation(source=source, problem=f"it is compressed ({name}); decompress it first")
    if b"\0" in data:
        raise NotAConversation(source=source, problem="it is a binary file; a conversation is JSON text")
    text = data.removeprefix(codecs.BOM_UTF8)
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise NotAConversation(source=source, problem="it is empty")
    if len(lines) > 1:
        with suppress(ValueError):
            if isinstance(_load(lines[0][1]), Mapping):
                return _parse_lines(lines, source)
    try:
        return _load(text)
    except ValueError as error:
        raise NotAConversation(source=source, problem=f"it cannot be read as JSON: {_reason(error)}") from error


def _parse_lines(lines: list[tuple[int, bytes]], source: str) -> JsonLines:
    last, _ = lines[-1]
    rows: list[SessionRow] = []
    for number, line in lines:
        try:
            value = _load(line)
        except ValueError as error:
            if number == last:
                return JsonLines(rows=tuple(rows), cut=number)
            problem = f"line {number} cannot be read as JSON: {_reason(error)}; mend it or take it out"
            raise NotAConversation(source=source, problem=problem) from error
        if not isinstance(value, Mapping):
            problem = f"line {number} is {kind_of(value)}; every line of a session is an object"
            raise NotAConversation(source=source, problem=problem)
        rows.append(SessionRow(number=number, fields=value))
    return JsonLines(rows=tuple(rows))


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        return f"it breaks at {line}column {error.colno}"
    return str(error)


def _load(text: bytes) -> Json:
    """Parse a JSON text. Raise ValueError if it is invalid or cannot be encoded again."""
    try:
        try:
            value = load(text)
            dump(value)
            return value
        except ValueError:
            # JavaScript tools write lone surrogates and Python tools write NaN; accept both.
            decoded = text.decode("utf-8", "surrogatepass")
            with suppress(ValueError):
                value = json.loads(
                    decoded,
                    parse_int=lambda digits: int(digits) if abs(float(digits)) < LARGEST_INTEGER else float(digits),
                    parse_constant=lambda _: None,
                )
                return load(dump(value))
            raise
    except (WireError, RecursionError) as error:
        raise ValueError(TOO_DEEP) from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error


def lineage(leaf: str, parents: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the ids from the root down to a leaf, stopping at missing or repeated parents."""
    ids: dict[str, None] = {}
    current: str | None = leaf
    while current is not None and current in parents and current not in ids:
        ids[current] = None
        current = parents[current]
    return tuple(reversed(ids))


def tokens(usage: Json, *names: str) -> int:
    """Add up the named token counts; missing ones are 0."""
    if not isinstance(usage, Mapping):
        return 0
    counts = (usage.get(name) for name in names)
    return sum(count for count in counts if isinstance(count, int))


def ignored_note(count: int, what: str) -> tuple[str, ...]:
    """Return a note on ignored rows, such as compactions."""
    if not count:
        return ()
    subject = f"1 {what} is" if count == 1 else f"{count} {what}s are"
    return (f"{subject} ignored: the whole log is read.",)


def branch_note(count: int) -> tuple[str, ...]:
    """Return a note on messages of other branches."""
    if not count:
        return ()
    subject = "1 message on another branch is" if count == 1 else f"{count} messages on other branches are"
    return (f"{subject} left out.",)
