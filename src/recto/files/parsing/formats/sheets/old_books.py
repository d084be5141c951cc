"""Numbers of an xls that are shown as parts of a hundred or with zeros in front. (xberg has dates and bare numbers.)"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from recto.files.parsing.formats.ole import Container
from recto.files.parsing.formats.sheets.number_formats import Shape, shape_of, shown

# Row and column of a cell, counted from the first that is used.
ShownCells: TypeAlias = Mapping[tuple[int, int], str]

NOTHING_SHOWN: ShownCells = {}
_HEAD = 4
_SHEET, _FORMAT, _STYLE, _END = 0x85, 0x41E, 0xE0, 0x0A
_NUMBER, _SHORT, _SHORTS, _FORMULA = 0x203, 0x27E, 0xBD, 0x06
# Cells with words, or with what is true or wrong.
_OTHERS = (0xFD, 0x204, 0x205, 0xD6)
_NO_NUMBER = b"\xff\xff"
_WORKSHEET = 0


def shown_cells(data: bytes) -> list[ShownCells]:
    """What such cells show, of each sheet in its order."""
    book = Container(data).stream("Workbook")
    starts, codes, styles = list[int](), dict[int, str](), list[int]()
    for kind, record in _records(book, 0):
        if kind == _SHEET and record[5:6] == bytes([_WORKSHEET]):
            starts.append(int.from_bytes(record[:4], "little"))
        elif kind == _FORMAT:
            wide = record[4:5] == b"\1"
            codes[int.from_bytes(record[:2], "little")] = record[5:].decode(
                "utf-16-le" if wide else "latin-1", "replace"
            )
        elif kind == _STYLE:
            styles.append(int.from_bytes(record[2:4], "little"))
    shapes: list[Shape] = [shape_of(number, codes.get(number)) for number in styles]
    return [_sheet(book, start, shapes) for start in starts]


def _records(data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """The records from a place up to the end of their part."""
    while at + _HEAD <= len(data):
        kind, length = struct.unpack_from("<HH", data, at)
        if kind == _END:
            return
        yield kind, data[at + _HEAD : at + _HEAD + length]
        at += _HEAD + length


def _sheet(book: bytes, start: int, shapes: Sequence[Shape]) -> ShownCells:
    rows, columns, found = set[int](), set[int](), dict[tuple[int, int], str]()
    for kind, record in _records(book, start):
        for row, column, style, number in _cells(kind, record):
            rows.add(row)
            columns.add(column)
            shape = shapes[style] if style < len(shapes) else "plain"
            if number is not None and (shape == "percent" or isinstance(shape, int)):
                found[row, column] = shown(repr(number), shape, from_1904=False)
    return {(row - min(rows), column - min(columns)): text for (row, column), text in found.items()}


def _cells(kind: int, record: bytes) -> Iterator[tuple[int, int, int, float | None]]:
    """Row, column, style and number of each cell of a record."""
    if kind in _OTHERS and len(record) >= struct.calcsize("<HHH"):
        yield *struct.unpack_from("<HHH", record), None
    elif kind in (_NUMBER, _FORMULA) and len(record) >= struct.calcsize("<HHHd"):
        row, column, style, number = struct.unpack_from("<HHHd", record)
        yield row, column, style, None if kind == _FORMULA and record[12:14] == _NO_NUMBER else number
    elif kind == _SHORT and len(record) >= struct.calcsize("<HHHI"):
        row, column, style, short = struct.unpack_from("<HHHI", record)
        yield row, column, style, _long(short)
    elif kind == _SHORTS:
        row, column = struct.unpack_from("<HH", record.ljust(_HEAD, b"\0"))
        for place in range((len(record) - 6) // 6):
            style, short = struct.unpack_from("<HI", record, _HEAD + 6 * place)
            yield row, column + place, style, _long(short)


def _long(short: int) -> float:
    """A number that was written shortly: a whole one, or the first half of a long one, or either a hundred times."""
    whole = (short >> 2) - (1 << 30 if short >> 31 else 0)
    number = float(whole) if short & 2 else struct.unpack("<d", struct.pack("<II", 0, short & 0xFFFFFFFC))[0]
    return number / 100 if short & 1 else number
