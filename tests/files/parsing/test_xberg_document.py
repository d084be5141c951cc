"""D6: details of letters that xberg alone loses: links, merged cells, boxes, remarks, rare characters."""

import pytest

from recto.files.parsing.formats.office import letters, opendocument
from tests.documents import content
from tests.files.parsing.hostile import OFFICE, docx
from tests.files.parsing.office import open_document, relations, table_row
from tests.files.parsing.reading import read

BOX = "<draw:frame><draw:text-box><text:p>one</text:p><text:p>two</text:p></draw:text-box></draw:frame>"


def cell(words: str, problem: str = "") -> str:
    return f"<table:table-cell {problem}><text:p>{words}</text:p></table:table-cell>"


def rich(body: str) -> bytes:
    return rf"{{\rtf1\ansi\uc1 {body}}}".encode()


def rich_row(*cells: str, edges: tuple[int, ...]) -> str:
    problem = "".join(rf"\cellx{edge}" for edge in edges)
    return rf"\trowd{problem}\pard\intbl " + "".join(rf"{one}\cell " for one in cells) + r"\row "


def test_D6_a_link_of_a_docx_leads_where_it_says():
    clicked = f'<w:hyperlink xmlns:r="{OFFICE}" r:id="h"><w:r><w:t>{{}}</w:t></w:r></w:hyperlink>'
    body = f"<w:p>{clicked.format('shop')}<w:r><w:t> R&amp;amp;D</w:t></w:r></w:p>"
    body += f"<w:tbl><w:tr><w:tc><w:p>{clicked.format('cell')}</w:p></w:tc></w:tr></w:tbl>"
    related = relations(h="https://x.y/?a=1&amp;copy=2&amp;q=&quot;b&quot;").replace('/x"', '/hyperlink"')
    reading = read(docx(body, parts={"word/_rels/document.xml.rels": related}), "docx")
    assert reading.texts("paragraph") == ['[shop](https://x.y/?a=1&copy=2&q="b") R&amp;D']
    assert reading.cells() == [('[cell](https://x.y/?a=1&copy=2&q="b")',)]


def test_D6_cells_of_an_odt_stand_under_their_heads_where_some_are_merged():
    covered = "<table:covered-table-cell><text:p>unseen</text:p></table:covered-table-cell>"
    wide = table_row(cell("wide", 'table:number-columns-spanned="2"'), covered, cell("C"))
    high = table_row(cell("high", 'table:number-rows-spanned="2"'), cell("b"), cell("c"))
    below = table_row('<table:covered-table-cell table:number-columns-repeated="2"/>', cell("d"))
    data = open_document("text", f"<table:table>{wide}{high}{below}</table:table>")
    assert read(data, "odt").cells() == [("wide", "", "C"), ("high", "b", "c"), ("", "", "d")]


def test_D6_a_box_of_an_odt_is_read_once():
    data = open_document("text", f"{BOX}<text:p>before {BOX}after</text:p>")
    assert read(data, "odt").texts("paragraph") == ["one", "two", "before \none\ntwo\nafter"]


def test_D6_a_remark_in_an_odt_is_no_footnote():
    remark = "<office:annotation><text:p>really</text:p><text:p>so?</text:p></office:annotation>"
    reading = read(open_document("text", f"<text:p>It is{remark}.</text:p>"), "odt")
    assert [(one.kind, one.text) for one in reading.elements] == [("paragraph", "It is [comment: really so?].")]


@pytest.mark.parametrize(
    "damaged", [b"", b"PK\3\4", open_document("text", "x")[:200], open_document("text", "<draw:text-box>")]
)
def test_D6_what_cannot_be_made_ready_stays_as_it_is(damaged: bytes):
    assert opendocument.prepare_odt(damaged) == damaged


def test_D6_a_tab_in_the_words_of_a_doc_sets_no_cells_apart():
    words = content.ENDING.replace(" ", "\t", 1)
    assert words != content.ENDING
    data = (content.HERE / "letter.doc").read_bytes()
    tabbed = data.replace(content.ENDING.encode("utf-16-le"), words.encode("utf-16-le"))
    assert tabbed != data
    assert words in read(tabbed, "doc").text


@pytest.mark.parametrize("halves", [r"\u-10179?\u-8704?", r"\uc0 \u55357\uc1 \u56832\'3f", r"\u55357 \u56832 ?"])
def test_D6_a_rare_character_of_an_rtf_is_read(halves: str):
    assert read(rich(rf"\pard \u20320?{halves} end\par"), "rtf").text.replace(" end", "end") == "你😀end"


def test_D6_halves_of_characters_that_do_not_belong_together_stay():
    odd = rich(r"\u-10179?\u20320?\u-8704?")
    assert letters.prepare_rtf(odd) == odd


def test_D6_cells_of_an_rtf_stand_under_their_heads_where_some_are_wide():
    table = rich_row("wide", "C", edges=(2_000, 3_000)) + rich_row("a", "b", "c", edges=(1_010, 2_000, 3_000))
    other = rich_row("x", "y", edges=(1_500, 3_000))
    reading = read(rich(rf"{table}\pard between\par {other}\pard end\par"), "rtf")
    assert reading.cells() == [("wide", "", "C"), ("a", "b", "c"), ("x", "y")]


def test_D6_a_table_in_a_cell_of_an_rtf_is_left_as_it_is():
    nested = r"in\nestcell{\*\nesttableprops\trowd\cellx500\cellx900\nestrow}"
    data = rich(rich_row(nested, "b", edges=(1_000, 2_000)) + r"\pard end\par")
    assert letters.prepare_rtf(data) == data
