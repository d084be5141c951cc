"""D6: content of OpenDocument drawings, slides and charts."""

import pytest

from recto.files.parsing.ports import DocumentStart
from tests.files.parsing.office import open_document, table_row
from tests.files.parsing.reading import read


def page(*shapes: str) -> str:
    return f"<draw:page>{''.join(shapes)}</draw:page>"


def box(words: str, problem: str = "") -> str:
    return f"<draw:frame {problem}><draw:text-box><text:p>{words}</text:p></draw:text-box></draw:frame>"


def texts(data: bytes, form: str = "odp") -> list[str]:
    return [one.text for one in read(data, form).elements]


@pytest.mark.parametrize(("form", "kind", "unit"), [("odp", "presentation", "slide"), ("odg", "drawing", "page")])
def test_D6_words_on_every_kind_of_shape_are_read(form: str, kind: str, unit: str):
    kinds = ("custom-shape", "rect", "ellipse", "line", "connector", "polygon", "path", "caption")
    shapes = [f"<draw:{one}><text:p>on <text:span>a {one}</text:span></text:p></draw:{one}>" for one in kinds]
    group = f"<draw:g><draw:g>{shapes[0]}</draw:g>{box('in a group')}</draw:g>"
    linked = f'<draw:a xlink:href="https://e.example/">{box("led")}</draw:a>'
    reading = read(open_document(kind, page(*shapes, group, linked) + page(box("next"))), form)
    assert reading.start == DocumentStart(unit="page" if form == "odg" else "slide", page_count=2)
    assert [one.text for one in reading.elements] == [
        *(f"[{unit} 1]", *(f"on a {one}" for one in kinds)),
        *("on a custom-shape", "in a group", "led", f"[{unit} 2]", "next"),
    ]


def test_D6_a_slide_has_its_title_first_and_its_notes_last():
    comment_xml = "<office:annotation><text:p>why?</text:p></office:annotation>"
    notes = f"<presentation:notes>{box('say it', PLACE.format('notes'))}{box('7')}</presentation:notes>"
    picture = "<draw:frame><draw:image/><svg:desc>a\nmap</svg:desc></draw:frame>"
    furniture = box("7", PLACE.format("page-number"))
    title = box("The<text:line-break/>title", PLACE.format("title"))
    data = open_document("presentation", page(furniture, comment_xml, box("words"), picture, title, notes))
    assert texts(data)[1:] == ["## The title", "words", "[image: a map]", "[comment] why?", "[speaker notes] say it"]


PLACE = 'presentation:class="{}"'


def test_D6_blanks_links_and_lists_on_a_shape_are_kept():
    inner = "<text:list><text:list-item><text:p>inner</text:p></text:list-item></text:list>"
    items_xml = f"<text:list><text:list-item><text:p>outer</text:p>{inner}</text:list-item></text:list>"
    clicked = '<text:a xlink:href="https://e.example/?a=1&amp;b=2">here</text:a>'
    words = f'a<text:s text:c="2"/>b<text:tab/>{clicked}<office:annotation><text:p>not</text:p></office:annotation>.'
    shape = f"<draw:rect><text:p>{words}</text:p>{items_xml}</draw:rect>"
    assert texts(open_document("drawing", page(shape)), "odg")[1:] == [
        "a  b\t[here](https://e.example/?a=1&b=2).",
        "- outer",
        "  - inner",
    ]


# Charts


def cell(text: str = "") -> str:
    string_cell = '<table:table-cell office:value-type="string">'
    return f"{string_cell}<text:p>{text}</text:p></table:table-cell>" if text else "<table:table-cell/>"


def row(*cells: str) -> str:
    return table_row(*map(cell, cells))


TABLE = (
    f'<table:table table:name="local-table"><table:table-header-rows>{row("", "North", "South")}'
    f"</table:table-header-rows><table:table-rows>{row('Q1', '1', '3')}{row('Q2', '2', 'NaN')}</table:table-rows>"
    "</table:table>"
)
CHARTS = (
    f"<office:chart><chart:chart><chart:title><text:p>Sales</text:p></chart:title>{TABLE}</chart:chart></office:chart>"
)
CHART = '<draw:frame><draw:object xlink:href="./Object 1"/><draw:image/></draw:frame>'
CELLS = [("", "North", "South"), ("Q1", "1", "3"), ("Q2", "2", "")]


def test_D6_a_chart_on_a_slide_is_the_table_it_was_drawn_from():
    reading = read(open_document("presentation", page(CHART), **{"Object 1": CHARTS}), "odp")
    assert reading.texts("paragraph") == ["[chart: Sales]"]
    assert reading.cells() == CELLS


@pytest.mark.parametrize(
    "chart_xml", ["", "<unclosed", "<office:text/>", "<office:chart><chart:chart/></office:chart>"]
)
def test_D6_an_object_that_is_no_chart_does_no_harm(chart_xml: str):
    reading = read(open_document("presentation", page(CHART, box("words")), **{"Object 1": chart_xml}), "odp")
    assert reading.cells() == []
    assert reading.texts("paragraph")[-1] == "words"


def test_D6_a_chart_in_a_letter_stands_behind_its_paragraph():
    body = f"<text:p>Before {CHART} it.</text:p><text:p>After.</text:p>"
    reading = read(open_document("text", body, **{"Object 1": CHARTS}), "odt")
    assert [one.text.partition("\n")[0] for one in reading.elements] == [
        *("Before it.", "[chart: Sales]", "|  | North | South |", "After.")
    ]
    assert reading.cells() == CELLS


def test_D6_a_chart_on_a_sheet_stands_below_its_cells():
    def sheet(name: str, words: str, chart_xml: str = "") -> str:
        return f'<table:table table:name="{name}"><table:shapes>{chart_xml}</table:shapes>{row(words)}</table:table>'

    body = sheet("A &amp; B", "first", CHART) + sheet("C", "second")
    reading = read(open_document("spreadsheet", body, **{"Object 1": CHARTS}), "ods")
    assert [(one.page, one.rows) for one in reading.elements if one.rows] == [
        (1, (("first",),)),
        (1, tuple(CELLS)),
        (2, (("second",),)),
    ]
