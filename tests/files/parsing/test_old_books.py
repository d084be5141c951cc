"""D6: cells of an xls have the text that Excel shows. The tests write the records by hand."""

import struct
from collections.abc import Sequence

import pytest

from recto.files.parsing.formats.office.old_office import shown_cells
from tests.documents.compound import compound_file
from tests.files.parsing.reading import read

WORKBOOK, SHEET = 5, 0x10
PERCENT, PLAIN, ZEROS, OWN = range(16, 20)


def record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def begin(part: int) -> bytes:
    return record(0x809, struct.pack("<HHHHII", 0x600, part, 0, 0, 0, 6))


def words(row: int, column: int, text: str) -> bytes:
    return record(0x204, struct.pack("<HHHHB", row, column, PLAIN, len(text), 0) + text.encode("latin-1"))


def number(row: int, column: int, value: float, style: int) -> bytes:
    return record(0x203, struct.pack("<HHHd", row, column, style, value))


def short(row: int, column: int, whole: int, style: int) -> bytes:
    """Return a record of a number in hundredths."""
    return record(0x27E, struct.pack("<HHHI", row, column, style, whole << 2 & 0xFFFFFFFF | 3))


def shorts(row: int, column: int, wholes: Sequence[int], style: int) -> bytes:
    inner = b"".join(struct.pack("<HI", style, one << 2 & 0xFFFFFFFF | 3) for one in wholes)
    return record(0xBD, struct.pack("<HH", row, column) + inner + struct.pack("<H", column + len(wholes) - 1))


def formula(row: int, column: int, value: bytes, style: int) -> bytes:
    return record(0x06, struct.pack("<HHH", row, column, style) + value + bytes(6) + struct.pack("<H", 0))


def book(*sheets: bytes) -> bytes:
    formats = [9, 0, 164, 165]
    codes = {164: "0000", 165: '0.0"%"\\ %'}
    styles = b"".join(record(0xE0, struct.pack("<HH", 0, one) + bytes(16)) for one in [0] * 16 + formats)
    name_records = [
        record(0x41E, struct.pack("<HHB", key, len(code), 0) + code.encode("latin-1")) for key, code in codes.items()
    ]
    head, ends = begin(WORKBOOK) + b"".join(name_records) + styles, record(0x0A)
    names = [f"S{place}" for place in range(1, len(sheets) + 1)]
    at = len(head) + sum(len(record(0x85, bytes(8 + len(name)))) for name in names) + len(ends)
    sheet_records = b""
    for name, sheet in zip(names, sheets, strict=True):
        sheet_records += record(0x85, struct.pack("<IBBBB", at, 0, 0, len(name), 0) + name.encode())
        at += len(begin(SHEET) + sheet + ends)
    parts = b"".join(begin(SHEET) + sheet + ends for sheet in sheets)
    return compound_file({"Workbook": head + sheet_records + ends + parts})


def test_D6_parts_of_a_hundred_in_an_xls_are_shown_as_such():
    first = words(2, 1, "share") + number(2, 2, 0.256, PERCENT) + number(3, 2, 0.256, PLAIN)
    first += short(4, 2, -50, PERCENT) + shorts(5, 1, [25, 100], PERCENT) + number(6, 1, 42, ZEROS)
    first += formula(6, 2, struct.pack("<d", 0.5), OWN)
    second = number(0, 0, 1.5, PERCENT) + number(1, 0, 3, PLAIN)
    assert read(book(first, second), "xls").cells() == [
        *(("share", "25.6%"), ("", "0.256"), ("", "-50%"), ("25%", "100%"), ("0042", "50%")),
        *(("150%",), ("3",)),
    ]


def test_D6_a_formula_in_an_xls_that_gives_words_is_no_number():
    cells = number(0, 0, 1, PERCENT) + formula(1, 0, b"\0\0\0\0\0\0\xff\xff", PERCENT)
    assert shown_cells(book(cells)) == [{(0, 0): "100%"}]


@pytest.mark.parametrize("size", [0, 100, 600, 1_100, 3_000])
def test_D6_an_xls_that_breaks_off_does_no_harm(size: int):
    assert shown_cells(book(number(0, 0, 1, PERCENT))[:size]) in ([], [{}], [{(0, 0): "100%"}])
    assert shown_cells(b"\xff" * size) == []
