"""Numbered lines of a text of any size, read as a stream. Only the shown lines are held in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recto.config.run_settings import FileToolSettings
from recto.page.prompt.reminder import FRAME_TAGS, neutralise

# Longest line to show in full. Longer lines are minified code or data.
LONGEST_LINE = FileToolSettings.line_characters
# The most bytes of a UTF-8 character.
WIDEST = 4
LINE = "{number}→{text}"
CUT_LINE = " [... {bytes:,} bytes in this line, the rest of it is not shown]"


@dataclass(frozen=True, kw_only=True)
class LineRange:
    """Lines from `first` to `last`, counted from 1; `last` None is the end."""

    first: int = 1
    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class NumberedLines:
    """Lines as shown, the number of the last one, and the number of lines in the text. `lines` may be fewer than
    requested.
    """

    lines: tuple[str, ...]
    last: int
    total: int


def read_lines(pieces: Iterable[bytes], line_range: LineRange, room: int, longest: int = LONGEST_LINE) -> NumberedLines:
    """Return at least one of the requested lines of a UTF-8 text, cut to `longest`, within `room` characters."""
    collector = _LineCollector(line_range, room, longest)
    for piece in pieces:
        collector.add(piece)
    return collector.end()


class _LineCollector:
    """Collector of lines from a stream. A line ends with LF or CRLF."""

    def __init__(self, line_range: LineRange, room: int, longest: int) -> None:
        self._first = line_range.first
        self._last = line_range.last
        self._room = room
        self._longest = max(1, min(longest, room))
        # The number of the current line, and whether it has any bytes yet.
        self._number = 1
        self._is_line_open = False
        self._open = bytearray()
        self._open_bytes = 0
        self._lines = list[str]()
        self._is_over = False

    def add(self, piece: bytes) -> None:
        if not piece:
            return
        # Skip to the first requested line.
        at, before = 0, self._first - self._number
        if 0 < before <= piece.count(b"\n"):
            for _ in range(before):
                at = piece.index(b"\n", at) + 1
            self._number = self._first
        while not self._is_over and self._first <= self._number and at < len(piece):
            line_end = piece.find(b"\n", at)
            end = len(piece) if line_end < 0 else line_end
            more = self._longest * WIDEST - len(self._open)
            self._open += piece[at : min(end, at + more)]
            self._open_bytes += end - at
            at = end + 1
            if line_end >= 0:
                self._close_line()
                self._number += 1
        self._number += piece.count(b"\n", at)
        self._is_line_open = not piece.endswith(b"\n")

    def end(self) -> NumberedLines:
        total = self._number if self._is_line_open else self._number - 1
        if self._is_line_open and not self._is_over and self._first <= self._number:
            self._close_line()
        return NumberedLines(lines=tuple(self._lines), last=self._first + len(self._lines) - 1, total=total)

    def _close_line(self) -> None:
        text = self._open.decode("utf-8", "replace").removesuffix("\r")
        if len(text) > self._longest or self._open_bytes > len(self._open):
            text = text[: self._longest] + CUT_LINE.format(bytes=self._open_bytes)
        line = LINE.format(number=self._number, text=neutralise(text, FRAME_TAGS))
        self._open, self._open_bytes = bytearray(), 0
        self._room -= len(line) + 1
        if self._room < 0 and self._lines:
            self._is_over = True
            return
        self._lines.append(line)
        self._is_over = self._room <= 0 or self._number == self._last
