"""Some lines of a text of any size, with their numbers. It never holds more of the text than is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recto.config.run_settings import FileToolSettings
from recto.page.prompt.reminder import FRAME_TAGS, neutralise

# What is longer was not written to be read: packed scripts, data.
LONGEST_LINE = FileToolSettings.line_characters
# A character of UTF-8 has no more bytes.
WIDEST = 4
LINE = "{number}→{text}"
CUT_LINE = " [... {bytes:,} bytes in this line, the rest of it is not shown]"


@dataclass(frozen=True, kw_only=True)
class LineRange:
    """Lines from `first` on, counted from 1, to `last` with it; None: to the end."""

    first: int = 1
    last: int | None = None


@dataclass(frozen=True, kw_only=True)
class NumberedLines:
    """Lines as they are shown, the number of the last, and how many the whole text has. Fewer than asked for fitted."""

    lines: tuple[str, ...]
    last: int
    total: int


def take_lines(pieces: Iterable[bytes], wanted: LineRange, room: int, longest: int = LONGEST_LINE) -> NumberedLines:
    """The lines of a text in UTF-8 that were asked for, as far as `room` characters hold them, one at least.

    Lines of more than `longest` characters are cut.
    """
    taking = _Taking(wanted, room, longest)
    for piece in pieces:
        taking.take(piece)
    return taking.end()


class _Taking:
    """Lines taken out of a text that comes in pieces. A line ends with a line feed, after a carriage return or not."""

    def __init__(self, wanted: LineRange, room: int, longest: int) -> None:
        self._first = wanted.first
        self._last = wanted.last
        self._room = room
        self._longest = max(1, min(longest, room))
        # The number of the line the next byte is in, and whether it has any yet.
        self._number = 1
        self._has_begun = False
        self._open = bytearray()
        self._open_bytes = 0
        self._lines = list[str]()
        self._is_over = False

    def take(self, piece: bytes) -> None:
        if not piece:
            return
        at = self._skip(piece)
        while not self._is_over and self._first <= self._number and at < len(piece):
            at = self._take_line(piece, at)
        self._number += piece.count(b"\n", at)
        self._has_begun = not piece.endswith(b"\n")

    def end(self) -> NumberedLines:
        total = self._number if self._has_begun else self._number - 1
        if self._has_begun and not self._is_over and self._first <= self._number:
            self._close_line()
        return NumberedLines(lines=tuple(self._lines), last=self._first + len(self._lines) - 1, total=total)

    def _skip(self, piece: bytes) -> int:
        """Where the lines that are wanted begin or go on in a piece; where none do, at its beginning."""
        lines = self._first - self._number
        if lines <= 0 or piece.count(b"\n") < lines:
            return 0
        at = 0
        for _ in range(lines):
            at = piece.index(b"\n", at) + 1
        self._number = self._first
        return at

    def _take_line(self, piece: bytes, at: int) -> int:
        """Take a line, or as much of it as this piece has. Returns where the next begins."""
        found = piece.find(b"\n", at)
        end = len(piece) if found < 0 else found
        more = self._longest * WIDEST - len(self._open)
        self._open += piece[at : min(end, at + more)]
        self._open_bytes += end - at
        if found < 0:
            return end
        self._close_line()
        self._number += 1
        return end + 1

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
