"""F5, D9: one call takes of a document about as much as it shows, however large the document is."""

import pytest

from recto.conversation.document import Element
from recto.tools.documents.document_parts import LEAST_AT_ONCE, MOST_AT_ONCE
from recto.tools.documents.read_files import read_files
from tests.tools.files_at_hand import at_hand, rows_of, run
from tests.tools.growing_document import Growing

# For the one that tells whether there is more.
ONE_MORE = 1


def a_sheet(elements: int, characters: int) -> Growing:
    """One large sheet between two small ones, read to its end."""
    pieces = [Element(kind="rows", text="x" * characters, page=2) for _ in range(elements)]
    heads = [Element(kind="page", text=f"[sheet {number}]", page=number) for number in (1, 2, 3)]
    given = [heads[0], heads[1], *pieces, heads[2]]
    return Growing(given=given, unit="sheet", read=len(given))


def shown(growing: Growing, **more: object) -> str:
    (row,) = rows_of(run(read_files, at_hand(a=growing), {"ids": ["a"], **more}))
    return row["content"]


@pytest.mark.parametrize("pages", [{}, {"pages": "2"}, {"pages": "2-3"}, {"pages": "1-3"}])
@pytest.mark.parametrize("offset", [0, 700_000])
def test_F5_a_call_takes_no_more_characters_than_it_shows_and_one(pages: dict[str, str], offset: int):
    sheet = a_sheet(100, 10_000)
    said = shown(sheet, limit=100, offset=offset, **pages)
    assert f"characters {offset + 1}-{offset + 100} of 1000" in said
    # What is shown of a text without pages is looked at again, to tell the page it ends on.
    assert sheet.characters_handed <= (100 + ONE_MORE) * (1 if pages else 2)
    assert sheet.elements_handed == 0


@pytest.mark.parametrize("pages", [{}, {"pages": "2"}, {"pages": "2-3"}, {"pages": "1-3"}])
@pytest.mark.parametrize("offset", [0, 1_500])
def test_D9_a_call_takes_no_more_elements_than_it_shows_and_one(pages: dict[str, str], offset: int):
    sheet = a_sheet(2_000, 10)
    said = shown(sheet, limit=7, offset=offset, format="elements", **pages)
    assert f"elements {offset + 1}-{offset + 7} of 200" in said
    assert sheet.elements_handed <= 7 + ONE_MORE
    assert sheet.characters_handed == 0


@pytest.mark.parametrize("pages", [{}, {"pages": "2"}])
def test_D9_of_elements_that_are_long_only_a_few_are_taken(pages: dict[str, str]):
    sheet = a_sheet(500, 50_000)
    assert "elements 3-3 of 50" in shown(sheet, offset=2, format="elements", **pages)
    assert sheet.elements_handed <= LEAST_AT_ONCE


def test_D9_of_elements_that_are_short_no_more_are_taken_than_could_be_shown_and_a_step():
    sheet = a_sheet(5_000, 1)
    said = shown(sheet, pages="2", format="elements")
    count = said.count('"kind":"rows"')
    assert count > 300
    assert sheet.elements_handed <= 20_000 // 21 + ONE_MORE + MOST_AT_ONCE


def test_F5_an_offset_past_the_end_takes_nothing():
    sheet = a_sheet(100, 1_000)
    assert shown(sheet, pages="2", offset=10**6).startswith("Error: offset 1000000 is past the end: there are ")
    assert shown(sheet, pages="2", offset=10**6, format="elements").endswith("there are 101 elements in these pages.")
    assert (sheet.characters_handed, sheet.elements_handed) == (0, 0)
