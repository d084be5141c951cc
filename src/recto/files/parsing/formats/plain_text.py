"""Plain text and tables in text (csv, tsv). They need no library, so small files are parsed in a thread."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from recto.conversation.document import Element
from recto.files.parsing.formats.tables import table_elements

PIECE_CHARACTERS = 32_768


def pieces(texts: Iterable[str]) -> Iterator[Element]:
    """The text that these make, in elements that end at line ends, as far as lines are not too long for that."""
    rest = ""
    for text in texts:
        rest, start = rest + text, 0
        while len(rest) - start > PIECE_CHARACTERS:
            end = _end_of_piece(rest, start)
            yield Element(kind="text", text=rest[start:end])
            start = end
        rest = rest[start:]
    if rest:
        yield Element(kind="text", text=rest)


def _end_of_piece(text: str, start: int) -> int:
    end = start + PIECE_CHARACTERS
    line_end = text.rfind("\n", start, end)
    return line_end + 1 if line_end >= start else end


# The likelier one first.
DELIMITERS = {"csv": ",;\t|", "tsv": "\t,;|"}
HEAD_LINES = 100
HEAD_CHARACTERS = 65_536
# A quote that is never closed would make one cell of all that follows.
CELL_CHARACTERS = 1_000_000
# Of the first rows, so many must have equally many cells.
ALIKE_SHARE = 0.5
# The ends that programs write; not those that only Unicode knows.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_DECLARED = re.compile(r"sep=([,;|\t])\r?\n", re.IGNORECASE)


def delimited(text: str, form: str) -> Iterator[Element]:
    """The table that a text is, as it is read."""
    declared = _DECLARED.match(text)
    lines = _Lines(text, declared.end() if declared else 0)
    delimiter = declared[1] if declared else delimiter_of(text, DELIMITERS.get(form, DELIMITERS["csv"]))
    if delimiter is None:
        yield from pieces([text])
        return
    csv.field_size_limit(CELL_CHARACTERS)
    yield from table_elements(_rows(lines, delimiter))
    yield from pieces([text[lines.row_start :]])


def delimiter_of(text: str, delimiters: str) -> str | None:
    """What stands between the cells, by which most of the first rows have equally many; None where nothing does."""
    head = text[:HEAD_CHARACTERS]
    cut = head.rfind("\n") + 1 if len(text) > HEAD_CHARACTERS else len(head)
    lines = _LINE.findall(head[: cut or len(head)])[:HEAD_LINES]
    best = max(delimiters, key=lambda one: _likeness(lines, one))
    return best if _likeness(lines, best) > 0 else None


def _likeness(lines: list[str], delimiter: str) -> float:
    """The share of rows that have as many cells as most have, and more than one; then the more cells the better."""
    try:
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
    except csv.Error:
        return 0
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    share = count / max(1, widths.total())
    return share + min(width, 99) / 1_000 if width > 1 and share >= ALIKE_SHARE else 0


class _Lines:
    """The lines of a text one after the other, without a copy of it. Knows where the row began that is being read."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._place = start
        self.row_start = start

    def __iter__(self) -> Iterator[str]:
        for line in _LINE.finditer(self._text, self._place):
            self._place = line.end()
            yield line[0]

    def row_ends(self) -> None:
        """All that was read up to here is in rows."""
        self.row_start = self._place


def _rows(lines: _Lines, delimiter: str) -> Iterator[list[str]]:
    """The rows up to the end, or to what cannot be read as one."""
    reader = csv.reader(lines, delimiter=delimiter)
    while (row := _next_row(reader)) is not None:
        lines.row_ends()
        if row:
            yield row


def _next_row(reader: Iterator[list[str]]) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error:
        return None
