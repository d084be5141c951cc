"""Plain text and tables in text (csv, tsv). They need no library, so small files are parsed in a thread."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from recto.conversation.document import Element
from recto.conversation.file_formats import format_by_ending
from recto.files.decode import UNREADABLE, decode, decode_long, find_declared_encoding
from recto.files.file_type import HEAD_BYTES, find_signature
from recto.files.parsing.formats.tables import table_elements
from recto.files.parsing.ports import (
    NOT_TEXT,
    DocumentEnd,
    DocumentStart,
    FoundElements,
    Frame,
    Task,
    UnreadableDocument,
)

# Largest file to parse in a thread. A thread cannot be stopped, and a larger file would block the event loop at times.
THREAD_BYTES = 2**18
PIECE_CHARACTERS = 32_768
# Characters that cannot be stored: PostgreSQL rejects NUL, and UTF-8 cannot encode surrogates.
_REJECTED = re.compile("[\0\ud800-\udfff]")
# Possible delimiters by format, in order of preference.
DELIMITERS = {"csv": ",;\t|", "tsv": "\t,;|"}
HEAD_LINES = 100
HEAD_CHARACTERS = 65_536
# Longest cell. Without a limit, an unclosed quote would make one cell of everything after it.
CELL_CHARACTERS = 1_000_000
# The share of the first rows that must have equally many cells.
ALIKE_SHARE = 0.5
# A line with its end. Unicode line separators do not end a line.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_DECLARATION = re.compile(r"sep=([,;|\t])\r?\n", re.IGNORECASE)


def is_plain(format: str) -> bool:
    """Return True if a format is plain text or a table in text."""
    row = format_by_ending(format)
    return row is None or row.parser in (None, "text", "table")


def parse_small(data: bytes, task: Task) -> list[Frame] | None:
    """Parse a small file of a plain format; return None if its bytes are of another format."""
    if find_signature(data[:HEAD_BYTES]) is not None:
        return None
    try:
        return [*map(clean, plain_frames(data, task.format)), DocumentEnd()]
    except UnreadableDocument as error:
        return [error.failed]


def plain_frames(data: bytes, form: str) -> Iterator[Frame]:
    """Yield the frames of a text or a table. Raise UnreadableDocument if the bytes are not text."""
    if form in DELIMITERS:
        return element_frames(parse_table(decode_text(data), form))
    encoding = find_declared_encoding(data) if form == "xml" else ""
    parts = decode_long(data) if encoding in ("", "utf-8") else None
    return element_frames(split_text([decode_text(data, encoding)] if parts is None else parts))


def decode_text(data: bytes, encoding: str = "") -> str:
    """Decode text. Raise UnreadableDocument for other bytes."""
    text = decode(data, encoding)
    if text is None:
        raise UnreadableDocument(NOT_TEXT)
    return text


def element_frames(elements: Iterable[Element]) -> Iterator[Frame]:
    """Yield a frame for each element."""
    yield DocumentStart()
    for element in elements:
        yield FoundElements(elements=(element,))


def clean(frame: Frame) -> Frame:
    """Replace characters of a frame that cannot be stored."""
    if not isinstance(frame, FoundElements) or not any(_REJECTED.search(one.text) for one in frame.elements):
        return frame
    elements = [
        replace(
            one,
            text=_REJECTED.sub(UNREADABLE, one.text),
            rows=tuple([tuple([_REJECTED.sub(UNREADABLE, cell) for cell in row]) for row in one.rows]),
        )
        for one in frame.elements
    ]
    return replace(frame, elements=tuple(elements))


def split_text(texts: Iterable[str]) -> Iterator[Element]:
    """Yield text in elements that end at line ends, unless a line is too long."""
    rest = ""
    for text in texts:
        rest, start = rest + text, 0
        while len(rest) - start > PIECE_CHARACTERS:
            end = start + PIECE_CHARACTERS
            end = rest.rfind("\n", start, end) + 1 or end
            yield Element(kind="text", text=rest[start:end])
            start = end
        rest = rest[start:]
    if rest:
        yield Element(kind="text", text=rest)


def parse_table(text: str, form: str) -> Iterator[Element]:
    """Yield the table of a text. Text that is not a table stays unchanged."""
    declaration = _DECLARATION.match(text)
    lines = _Lines(text, declaration.end() if declaration else 0)
    delimiter = declaration[1] if declaration else find_delimiter(text, DELIMITERS.get(form, DELIMITERS["csv"]))
    if delimiter is None:
        yield from split_text([text])
        return
    csv.field_size_limit(CELL_CHARACTERS)
    yield from table_elements(lines.rows(delimiter))
    yield from split_text([text[lines.row_start :]])


def find_delimiter(text: str, delimiters: str) -> str | None:
    """Return the delimiter that splits most of the first rows into equally many cells; None if there is none."""
    head = text[:HEAD_CHARACTERS]
    cut = head.rfind("\n") + 1 if len(text) > HEAD_CHARACTERS else len(head)
    lines = _LINE.findall(head[: cut or len(head)])[:HEAD_LINES]
    best = max(delimiters, key=lambda one: _likeness(lines, one))
    return best if _likeness(lines, best) > 0 else None


def _likeness(lines: list[str], delimiter: str) -> float:
    """Rate a delimiter by the share of rows with the most common number of cells, then by that number."""
    try:
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
    except csv.Error:
        return 0
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    share = count / max(1, widths.total())
    return share + min(width, 99) / 1_000 if width > 1 and share >= ALIKE_SHARE else 0


class _Lines:
    """The lines of a text, read without copying the text. `row_start` is the end of the last complete row."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._place = start
        self.row_start = start

    def __iter__(self) -> Iterator[str]:
        for line in _LINE.finditer(self._text, self._place):
            self._place = line.end()
            yield line[0]

    def rows(self, delimiter: str) -> Iterator[list[str]]:
        """Yield rows up to the end, or up to the first text that is not a row."""
        with suppress(csv.Error):
            for row in csv.reader(self, delimiter=delimiter):
                self.row_start = self._place
                if row:
                    yield row
