"""D6, D9: elements of text documents and of Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.document import Element
from recto.files.parsing.formats.markdown import parse_markdown
from recto.files.parsing.formats.office.letters import restore_table
from recto.files.parsing.formats.tables import table_elements, trim_rows
from recto.files.parsing.formats.xberg_document import FRAME_ELEMENTS, link
from recto.files.parsing.ports import FoundElements
from tests.files.parsing.hostile import package
from tests.files.parsing.reading import read

EPUB_PAGE = """<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head><body><h1>第一章</h1>
<p>Words with <a href="https://example.com/x">a link</a>.</p>
<ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>
<table><tr><th>甲</th><th>乙</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>"""


def test_D6_a_book_for_reading_has_its_structure():
    contents = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest><item id="c" href="c.xhtml"'
        ' media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles><rootfile'
        ' full-path="b.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    members = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "b.opf": contents}
    reading = read(package({**members, "c.xhtml": EPUB_PAGE}), "epub")
    assert [(one.kind, one.text) for one in reading.elements] == [
        ("heading", "# 第一章"),
        ("paragraph", "Words with [a link](https://example.com/x)."),
        *(("item", "- one"), ("item", "  - inner"), ("item", "- two")),
        ("table", "| 甲 | 乙 |\n| --- | --- |\n| 1 | 2 |"),
    ]


@pytest.mark.parametrize(
    ("text", "rows", "after"),
    [
        ("a\tb\t\tc\td\t\t", (("a", "b"), ("c", "d")), []),
        ("a\t\tc\t\t1\t2\t3\t\tMore.", (("a", "", "c"), ("1", "2", "3")), ["More."]),
        ("  - a\tb\t\t\t\t\t", (("a", "b"), ("", "")), []),
    ],
)
def test_D6_cells_of_a_doc_are_told_by_how_many_a_row_has(
    text: str, rows: tuple[tuple[str, ...], ...], after: list[str]
):
    table, *rest = restore_table(Element(kind="item", text=text))
    assert (table.rows, [one.text for one in rest]) == (rows, after)
    # Rows of any length are lines.
    (lines,) = restore_table(Element(kind="paragraph", text="a\tb\t\tc\t\td"))
    assert lines.text == "a | b\nc\nd"


def test_D6_a_long_letter_comes_in_several_frames():
    page = "".join(f"<p>paragraph {number}</p>" for number in range(2 * FRAME_ELEMENTS + 5))
    founds = [frame for frame in read(page.encode(), "html").frames if isinstance(frame, FoundElements)]
    assert [len(frame.elements) for frame in founds] == [FRAME_ELEMENTS, FRAME_ELEMENTS, 5]


@pytest.mark.parametrize(
    ("label", "url", "expected"),
    [
        ("words", "https://e.example/", "[words](https://e.example/)"),
        (" words ", "https://e.example/", " [words](https://e.example/) "),
        ("a]b", "https://e.example/a (b)", "[a\\]b](https://e.example/a%20(b%29)"),
        ("words", "#there", "words"),
        ("", "https://e.example/", ""),
        ("words", "", "words"),
    ],
)
def test_D6_a_link_is_markdown_where_it_leads_out(label: str, url: str, expected: str):
    assert link(label, url) == expected


@given(text=st.text(alphabet="ab#|-`* \n1.\\[](", max_size=200))
def test_D6_no_letter_of_a_markdown_text_is_lost(text: str):
    letters = [letter for letter in text if letter in "ab"]
    expected = "".join(one.text for one in parse_markdown(text))
    assert [letter for letter in expected if letter in "ab"] == letters


@given(rows=st.lists(st.lists(st.sampled_from(["", " ", "x", "a|b"]), max_size=5), max_size=6))
def test_D9_a_trimmed_table_keeps_every_cell_that_says_something(rows: list[list[str]]):
    trimmed_rows = trim_rows(rows)
    assert [cell for row in trimmed_rows for cell in row if cell] == [
        cell for row in rows for cell in row if cell.strip()
    ]
    assert not trimmed_rows or any(trimmed_rows[-1])
    for element in table_elements(trimmed_rows):
        assert len({len(row) for row in element.rows}) == 1
        assert len(element.text.split("\n")) == len(element.rows) + 1
