"""D6: tables in text, with any delimiter and of any length."""

import csv
from io import StringIO
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.files.parsing.formats.parse import parse
from recto.files.parsing.formats.plain_text import find_delimiter
from recto.files.parsing.formats.tables import PIECE_ROWS, ROW_CHARACTERS, split_long_rows
from recto.files.parsing.frames import pieces_of
from recto.files.parsing.ports import FoundElements, Task
from tests.files.parsing.reading import read

ROWS = (("name", "price", "note"), ("apple", "1.5", "fresh"), ("pear", "2", "ripe"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(("form", "end"), [("csv", "\n"), ("csv", "\r\n"), ("csv", "\r"), ("tsv", "\n")])
def test_D6_what_stands_between_cells_and_rows_is_found(delimiter: str, form: str, end: str):
    text = end.join(delimiter.join(row) for row in ROWS)
    assert read(text.encode(), form).cells() == list(ROWS)


@pytest.mark.parametrize(
    ("data", "cells"),
    [
        (b"sep=;\na,b;c\n1,5;2\n", [("a,b", "c"), ("1,5", "2")]),
        (b"a,b\n1,2\n4\n\n5,6,7\n", [("a", "b", ""), ("1", "2", ""), ("4", "", ""), ("5", "6", "7")]),
    ],
    ids=["a program tells the delimiter", "short rows are filled up and long ones kept"],
)
def test_D6_odd_tables_keep_their_cells(data: bytes, cells: list[tuple[str, ...]]):
    assert read(data, "csv").cells() == cells


def test_D6_a_table_is_markdown():
    assert read(b'a,b\r\n1,"x|y"\r\n2,"two\nlines"\r\n', "csv").text == (
        "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n| 2 | two<br>lines |"
    )


@pytest.mark.parametrize("text", ["just words\nand more of them\n", "one\n", "", "a, b and c.\nNo.\nElse.\nHere.\n"])
def test_D6_what_is_no_table_is_given_as_it_is(text: str):
    reading = read(text.encode(), "csv")
    assert reading.text == text
    assert not reading.cells()


def test_D6_what_follows_a_quote_that_is_never_closed_is_not_lost():
    rows = "".join(f"{number},word {number}\n" for number in range(300))
    broken = 'x,"open\n' + "y" * 1_100_000
    reading = read((rows + broken).encode(), "csv")
    assert len(reading.cells()) == 300
    assert "".join(reading.texts("text")) == broken


def test_D6_a_long_table_comes_in_pieces_the_first_at_once():
    data = "number,word\n" + "".join(f"{number},词{number}\n" for number in range(200_000))
    frames = parse(data.encode(), Task(format="csv", name="it.csv"))
    first, second = [frame for frame in islice(frames, 3) if isinstance(frame, FoundElements)]
    assert [one.kind for one in (*first.elements, *second.elements)] == ["table", "rows"]
    assert len(first.elements[0].rows) == PIECE_ROWS
    assert second.elements[0].text.startswith("| 199 | 词199 |\n| 200 | 词200 |")


@pytest.mark.parametrize("cell", ["x" * 300_000, "line\n" * 60_000, "|" * 200_000])
@pytest.mark.parametrize("form", ["csv", "html"])
def test_D9_a_very_long_cell_goes_on_in_rows_below_it(cell: str, form: str):
    lines = f'id,text\n1,"{cell}"\n2,short\n'
    page = f"<table><tr><td>id<td>text<tr><td>1<td>{cell}<tr><td>2<td>short</table>"
    reading = read((lines if form == "csv" else page).encode(), form)
    parts = [
        one
        for frame in reading.frames
        if isinstance(frame, FoundElements)
        for piece in pieces_of(frame, 0)
        for one in piece.elements
    ]
    assert all(one.rows for one in parts)
    assert [one.kind for one in parts] == ["table"] + ["rows"] * (len(parts) - 1)
    rows = [row for one in parts for row in one.rows]
    assert [row for row in rows if row[0]][0::2] == [("id", "text"), ("2", "short")]
    assert sum(row[1].count(cell[0]) for row in rows[1:-1]) == cell.count(cell[0])
    assert all(line.startswith("|") and line.endswith("|") for one in parts for line in one.text.split("\n"))


@given(rows=st.lists(st.lists(st.integers(0, 3 * ROW_CHARACTERS).map("x".__mul__), max_size=4), max_size=4))
def test_D9_no_character_of_a_long_row_is_lost_or_moved(rows: list[list[str]]):
    pieces = list(split_long_rows(rows))
    assert all(sum(map(len, row)) <= ROW_CHARACTERS for row in pieces)
    for place in range(4):
        column = ["".join(row[place : place + 1]) for row in rows]
        assert sum(len(row[place]) for row in pieces if len(row) > place) == sum(map(len, column))


CELLS = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Co", "Cn")), min_size=1, max_size=12)


@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=8))
def test_D6_every_cell_that_was_written_is_read(rows: list[list[str]]):
    lines = StringIO()
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows([["first", "second", "third"], *rows])
    text = lines.getvalue()
    if find_delimiter(text, ",;\t|") == ",":
        assert read(text.encode(), "csv").cells() == [("first", "second", "third"), *map(tuple, rows)]
