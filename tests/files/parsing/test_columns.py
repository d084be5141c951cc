"""D6: tables of a PDF keep their rows and columns, with or without lines."""

from collections.abc import Sequence

import pytest

from recto.conversation.document import Element
from recto.files.parsing.formats.pdf.columns import insert_tables
from tests.files.parsing.a_pdf import grid, lines_of, one_page, words_at
from tests.files.parsing.reading import Reading, read

SPARSE = (
    ("Item", "Jan", "Feb", "Mar", "Apr"),
    ("Rent", "100", "", "", ""),
    ("Food", "", "", "30", ""),
    ("Fuel", "", "20", "", ""),
    ("Water", "", "", "", "7"),
)


def test_D6_a_ruled_table_with_many_empty_cells_keeps_its_columns():
    data = one_page(lines_of(SPARSE) + grid(SPARSE))
    assert read(data, "pdf").cells() == list(SPARSE)
    moved_content = f"q .5 0 0 .5 40 60 cm {lines_of(SPARSE)}{grid(SPARSE)} Q"
    assert read(one_page(moved_content), "pdf").cells() == list(SPARSE)


FULL = (
    ("Product", "Units", "Price", "Total"),
    ("Apples", "12", "1.50", "18.00"),
    ("Pears and plums", "7", "2.00", "14.00"),
    ("Cherries", "100", "0.10", "10.00"),
    ("Sum", "119", "", "42.00"),
)
NAMES = (("Name", "City"), ("Ann Lee", "Paris"), ("Bob Ray", "Rome"), ("Cyd Moe", "Oslo"))
BEFORE, AFTER = "What follows was paid in each month of the year.", "After the table there is more to say."


def between(content: str) -> Reading:
    return read(one_page(words_at(72, 730, BEFORE) + content + words_at(72, 400, AFTER)), "pdf")


@pytest.mark.parametrize("rows", [SPARSE, FULL, NAMES])
@pytest.mark.parametrize("height", [12, 20])
def test_D6_a_table_without_lines_keeps_its_rows_and_columns(rows: Sequence[tuple[str, ...]], height: int):
    reading = between(grid(rows, 110, height))
    assert reading.cells() == list(rows)
    assert reading.texts("paragraph") == [BEFORE, AFTER]


def test_D6_a_cell_of_two_lines_and_one_alone_stay_in_their_columns():
    rows = (("Part", "What it does", "Cost"), ("Pump", "moves the water", "12"), ("", "from the well", ""))
    assert between(grid((*rows, ("Pipe", "carries it", "7")), 110)).cells() == [*rows, ("Pipe", "carries it", "7")]


PROSE = (
    "The left column of this page has prose",
    "that goes on for many lines and never",
    "stops, as prose does when it is set",
    "in two columns on a page of paper",
)


@pytest.mark.parametrize(
    "rows",
    [
        list(zip(PROSE, reversed(PROSE), strict=True)),
        [("-", line) for line in PROSE],
        [(f"{number}.", line) for number, line in enumerate(PROSE, 1)],
        [("one", "line"), ("and", "another")],
        [("words", "at"), ("all", ""), ("", "odds")],
        [("+", "=", "+"), ("=", "+", "="), ("+", "=", "=")],
    ],
    ids=["prose", "items", "numbers", "two", "scattered", "signs"],
)
def test_D6_what_only_stands_side_by_side_is_no_table(rows: Sequence[tuple[str, ...]]):
    reading = between(grid(rows, 260 if len(rows[0]) == 2 else 110))
    assert reading.cells() == []
    assert all(word in reading.text for row in rows for cell in row for word in cell.split())


def test_D6_a_table_in_the_midst_of_a_paragraph_is_cut_out_of_it_with_the_signs_around_its_words():
    whole = Element(kind="paragraph", text="“Before.” (a) 1\nb -2 % “After.”", page=7)
    cut = insert_tables([whole], [(("(a)", "1"), ("b", "-2 %"))], 7)
    assert [(one.kind, one.text) for one in cut] == [
        ("paragraph", "“Before.”"),
        ("table", "| (a) | 1 |\n| --- | --- |\n| b | -2 % |"),
        ("paragraph", "“After.”"),
    ]


def test_D6_a_table_that_was_found_already_stays_as_it_is():
    tables = [Element(kind="table", text="| a 1 |\n| --- |\n| b 2 |", page=7, rows=(("a 1",), ("b 2",)))]
    assert insert_tables(tables, [(("a", "1"), ("b", "2"))], 7) == tables
