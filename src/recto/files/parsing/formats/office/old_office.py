"""Old Office files, for details that xberg loses: numbers of an xls as shown, tables of a ppt."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from recto.files.parsing.formats.office.number_formats import Shape, format_value, shape_of
from recto.files.parsing.formats.pdf.columns import Rows

_ENTRY = 128
_HEAD_PLACES = 109
_FREE = 0xFFFFFFFA
_STREAM, _ROOT = 2, 5
_HEAD = 512


class Container:
    """An OLE compound file, read by sectors."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._size = 1 << min(12, max(9, _whole(data, 30, "<H")))
        self._small_below = _whole(data, 56, "<I")
        # The sectors of the allocation table.
        places = list(struct.unpack_from(f"<{_HEAD_PLACES}I", data.ljust(_HEAD, b"\xff"), 76))
        place, visited = _whole(data, 68, "<I"), set[int]()
        while place < _FREE and place not in visited and (sector := self._sector(place)):
            visited.add(place)
            *others, place = _numbers(sector)
            places += others
        self._next = self._table(places)
        self._next_small = self._table(self._chain(_whole(data, 60, "<I"), self._next))
        directory = b"".join(map(self._sector, self._chain(_whole(data, 48, "<I"), self._next)))
        # Name, kind, first sector and size of each entry.
        self._entries = list[tuple[str, int, int, int]]()
        for at in range(0, len(directory) - _ENTRY + 1, _ENTRY):
            entry = directory[at : at + _ENTRY]
            name = entry[: max(0, min(64, _whole(entry, 64, "<H")) - 2)].decode("utf-16-le", "replace")
            self._entries.append((name, entry[66], _whole(entry, 116, "<I"), _whole(entry, 120, "<I")))
        start = next((start for _, kind, start, _ in self._entries if kind == _ROOT), _FREE)
        self._small = b"".join(map(self._sector, self._chain(start, self._next)))

    def stream(self, *names: str) -> bytes:
        """Return the first stream with one of these names, from any folder; empty if there is none."""
        for name, kind, start, size in self._entries:
            if kind == _STREAM and name in names and size >= self._small_below:
                return b"".join(map(self._sector, self._chain(start, self._next)))[:size]
            if kind == _STREAM and name in names:
                parts = (self._small[one << 6 : (one + 1) << 6] for one in self._chain(start, self._next_small))
                return b"".join(parts)[:size]
        return b""

    def _sector(self, place: int) -> bytes:
        return self._data[(place + 1) * self._size : (place + 2) * self._size]

    def _table(self, sectors: Iterable[int]) -> Sequence[int]:
        # Skip duplicates: a small file may name the same sector millions of times.
        return _numbers(b"".join(self._sector(one) for one in dict.fromkeys(sectors) if one < _FREE))

    def _chain(self, start: int, following: Sequence[int]) -> Iterator[int]:
        visited = set[int]()
        while start < len(following) and start not in visited:
            visited.add(start)
            yield start
            start = following[start]


def _numbers(sectors: bytes) -> Sequence[int]:
    return memoryview(sectors[: len(sectors) // 4 * 4]).cast("I")


def _whole(data: bytes, at: int, shape: str) -> int:
    return int(struct.unpack_from(shape, data.ljust(_HEAD, b"\0"), at)[0])


# Texts of cells by row and column, counted from the first used ones.
ShownCells: TypeAlias = Mapping[tuple[int, int], str]

NOTHING_SHOWN: ShownCells = {}
_RECORD_HEAD = 4
_BOOK_SHEET, _FORMAT, _STYLE, _END = 0x85, 0x41E, 0xE0, 0x0A
_NUMBER, _SHORT, _SHORTS, _FORMULA = 0x203, 0x27E, 0xBD, 0x06
# Cells with text, truth values or errors.
_OTHERS = (0xFD, 0x204, 0x205, 0xD6)
_NO_NUMBER = b"\xff\xff"
_WORKSHEET = 0


def shown_cells(data: bytes) -> list[ShownCells]:
    """Return texts of cells whose number format xberg ignores, by sheet."""
    book = Container(data).stream("Workbook")
    starts, codes, styles = list[int](), dict[int, str](), list[int]()
    for kind, record in _book_records(book, 0):
        if kind == _BOOK_SHEET and record[5:6] == bytes([_WORKSHEET]):
            starts.append(int.from_bytes(record[:4], "little"))
        elif kind == _FORMAT:
            encoding = "utf-16-le" if record[4:5] == b"\1" else "latin-1"
            codes[int.from_bytes(record[:2], "little")] = record[5:].decode(encoding, "replace")
        elif kind == _STYLE:
            styles.append(int.from_bytes(record[2:4], "little"))
    shapes: list[Shape] = [shape_of(number, codes.get(number)) for number in styles]
    return [_read_sheet(book, start, shapes) for start in starts]


def _book_records(data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield the records from a position to the end of their part."""
    while at + _RECORD_HEAD <= len(data):
        kind, length = struct.unpack_from("<HH", data, at)
        if kind == _END:
            return
        yield kind, data[at + _RECORD_HEAD : at + _RECORD_HEAD + length]
        at += _RECORD_HEAD + length


def _read_sheet(book: bytes, start: int, shapes: Sequence[Shape]) -> ShownCells:
    rows, columns, texts = set[int](), set[int](), dict[tuple[int, int], str]()
    for kind, record in _book_records(book, start):
        for row, column, style, number in _book_cells(kind, record):
            rows.add(row)
            columns.add(column)
            shape = shapes[style] if style < len(shapes) else "plain"
            if number is not None and (shape == "percent" or isinstance(shape, int)):
                texts[row, column] = format_value(repr(number), shape, from_1904=False)
    return {(row - min(rows), column - min(columns)): text for (row, column), text in texts.items()}


def _book_cells(kind: int, record: bytes) -> Iterator[tuple[int, int, int, float | None]]:
    """Yield row, column, style and number of each cell of a record."""
    if kind in _OTHERS and len(record) >= struct.calcsize("<HHH"):
        yield *struct.unpack_from("<HHH", record), None
    elif kind in (_NUMBER, _FORMULA) and len(record) >= struct.calcsize("<HHHd"):
        row, column, style, number = struct.unpack_from("<HHHd", record)
        yield row, column, style, None if kind == _FORMULA and record[12:14] == _NO_NUMBER else number
    elif kind == _SHORT and len(record) >= struct.calcsize("<HHHI"):
        row, column, style, short = struct.unpack_from("<HHHI", record)
        yield row, column, style, _long(short)
    elif kind == _SHORTS:
        row, column = struct.unpack_from("<HH", record.ljust(_RECORD_HEAD, b"\0"))
        for place in range((len(record) - 6) // 6):
            style, short = struct.unpack_from("<HI", record, _RECORD_HEAD + 6 * place)
            yield row, column + place, style, _long(short)


def _long(short: int) -> float:
    """Decode a compressed number: an integer or the first half of a float, possibly times a hundred."""
    whole = (short >> 2) - (1 << 30 if short >> 31 else 0)
    number = float(whole) if short & 2 else struct.unpack("<d", struct.pack("<II", 0, short & 0xFFFFFFFC))[0]
    return number / 100 if short & 1 else number


_ATOM_HEAD = 8
_CONTAINER = 0xF
# Kinds of records: a slide, a group of shapes, a shape, its place in the group, its text.
_SLIDE, _GROUP, _SHAPE = 0x03EE, 0xF003, 0xF004
_PLACE, _WIDE_WORDS, _NARROW_WORDS = 0xF00F, 0x0FA0, 0x0FA8
_FEWEST_ROWS, _FEWEST_COLUMNS = 2, 2
_MOST_CELLS = 10_000
# Deepest nesting of groups. Programs nest less deeply.
_DEEPEST = 20


def slide_tables(data: bytes) -> Iterator[Rows]:
    """Yield the tables of all slides in order."""
    stream = Container(data).stream("PowerPoint Document")
    for kind, slide in _atoms(stream):
        if kind == _SLIDE:
            yield from _tables(slide, 0)


def _atoms(data: bytes, *, nested_only: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of records; with `nested_only`, of those that contain other records."""
    at = 0
    while at + _ATOM_HEAD <= len(data):
        version, kind, length = struct.unpack_from("<HHI", data, at)
        if not nested_only or version & _CONTAINER == _CONTAINER:
            yield kind, data[at + _ATOM_HEAD : at + _ATOM_HEAD + length]
        at += _ATOM_HEAD + length


def _tables(data: bytes, depth: int) -> Iterator[Rows]:
    """Yield the groups of shapes that form a table."""
    for kind, inner in _atoms(data, nested_only=True):
        if kind == _GROUP and (rows := _table_rows(inner)):
            yield rows
        elif depth < _DEEPEST:
            yield from _tables(inner, depth + 1)


def _table_rows(group: bytes) -> Rows | None:
    """Return the texts of a group of shapes by row and column; None if the group is not a table."""
    texts = dict[tuple[int, int], str]()
    for kind, shape in _atoms(group, nested_only=True):
        place = next((one for inner, one in _atoms(shape) if inner == _PLACE), b"") if kind == _SHAPE else b""
        if len(place) != struct.calcsize("<4i"):
            continue
        left, top, _, _ = struct.unpack("<4i", place)
        lines = [
            data.decode("utf-16-le" if kind == _WIDE_WORDS else "latin-1", "replace").replace("\r", "\n").strip()
            for _, box in _atoms(shape, nested_only=True)
            for kind, data in _atoms(box)
            if kind in (_WIDE_WORDS, _NARROW_WORDS)
        ]
        if words := "\n".join(lines):
            texts[top, left] = words
    tops, lefts = sorted({top for top, _ in texts}), sorted({left for _, left in texts})
    is_grid = len(tops) >= _FEWEST_ROWS and len(lefts) >= _FEWEST_COLUMNS and len(tops) * len(lefts) <= _MOST_CELLS
    # A group that is not a table leaves most places of the grid empty.
    if not is_grid or 2 * len(texts) <= len(tops) * len(lefts):
        return None
    return tuple([tuple([texts.get((top, left), "") for left in lefts]) for top in tops])
