"""D6, D9: cells of a workbook as shown, however far apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from recto.files.parsing.formats.office.number_formats import format_value, shape_of
from recto.files.parsing.formats.office.spreadsheet import NOT_READ, sheet_elements
from recto.files.parsing.formats.tables import PIECE_ROWS
from tests.files.parsing.hostile import OFFICE, package
from tests.files.parsing.office import open_document, relations, table_row
from tests.files.parsing.reading import Reading, read

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
FORMATS = {164: 'yyyy"年"m"月"d"日"', 165: "000000", 166: "[h]:mm:ss", 167: '"$"#,##0.00;[Red]-0'}
STYLES = (0, 22, 20, 10, 164, 165, 166, 167)
DATE_TIME, TIME, PERCENT, CHINESE_DATE, ZEROS, SPAN, MONEY = range(1, 8)


def text(place: str, words: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{words}</t></is></c>'


def number(place: str, value: str, style: int = 0) -> str:
    return f'<c r="{place}" s="{style}"><v>{value}</v></c>'


def book(rows: str, after: str = "", **more: str) -> bytes:
    """Return a workbook of one sheet. `after` follows its rows."""
    codes = "".join(f"<numFmt numFmtId='{key}' formatCode='{code}'/>" for key, code in FORMATS.items())
    styles_xml = "".join(f'<xf numFmtId="{key}"/>' for key in STYLES)
    spaces = f'{MAIN} xmlns:r="{OFFICE}"'
    parts = {
        "xl/workbook.xml": f'<workbook {spaces}><sheets><sheet name="A" r:id="s"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(s="worksheets/sheet1.xml", t="styles.xml", u="sharedStrings.xml"),
        "xl/worksheets/sheet1.xml": f"<worksheet {spaces}><sheetData>{rows}</sheetData>{after}</worksheet>",
        "xl/styles.xml": f"<styleSheet {MAIN}><numFmts>{codes}</numFmts><cellXfs>{styles_xml}</cellXfs></styleSheet>",
        "xl/sharedStrings.xml": f"<sst {MAIN}><si><r><t>ri</t></r><r><t>ch</t></r><rPh><t>x</t></rPh></si></sst>",
        **more,
    }
    return package(parts)


def cell(inner: str) -> str:
    reading = read(book(f'<row r="1">{inner}</row>'), "xlsx")
    return reading.cells()[0][0]


def bodies(reading: Reading) -> list[str]:
    return [one.text for one in reading.elements][1:]


def test_D6_cells_far_apart_are_read_and_what_is_empty_between_is_said():
    far = '<row r="1">' + text("A1", "head") + text("XFD1", "wide") + '</row><row r="2">' + text("B2", "x") + "</row>"
    reading = read(book(far + f'<row r="1048576">{text("A1048576", "end")}</row>'), "xlsx")
    assert bodies(reading) == [
        *("[16,381 empty columns left out]", "| head |  | wide |\n| --- | --- | --- |\n|  | x |  |"),
        *("[1,048,573 empty rows left out]", "| end |  |  |\n| --- | --- | --- |"),
    ]
    assert reading.cells() == [("head", "", "wide"), ("", "x", ""), ("end", "", "")]


def test_D6_a_few_empty_rows_and_columns_stay_and_those_at_the_end_are_left_out():
    rows = f'<row r="1">{text("A1", "a")}{text("D1", "")}</row><row r="4">{text("C4", "b")}</row>'
    reading = read(book(f'{rows}<row r="9">{text("A9", "")}</row>'), "xlsx")
    assert reading.cells() == [("a", "", ""), ("", "", ""), ("", "", ""), ("", "", "b")]


@pytest.mark.full
def test_D6_a_sheet_of_a_hundred_thousand_rows_is_read_in_pieces():
    rows = [
        f'<row r="{n}">{text(f"A{n}", f"行{n}")}{text(f"B{n}", "words")}{number(f"C{n}", str(n))}</row>'
        for n in range(1, 100_001)
    ]
    reading = read(book("".join(rows)), "xlsx")
    cells = reading.cells()
    assert (len(cells), cells[-1]) == (100_000, ("行100000", "words", "100000"))
    assert max(len(one.rows) for one in reading.elements) == PIECE_ROWS


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ('<c r="A1"><f>SUM(1,41)</f></c>', "=SUM(1,41)"),
        ('<c r="A1"><f>"a"&amp;B1</f><v></v></c>', '="a"&B1'),
        ('<c r="A1"><f>SUM(1,41)</f><v>42</v></c>', "42"),
        ('<c r="A1" t="str"><f>HYPERLINK("https://x.y/?a&amp;b","go")</f><v>go</v></c>', "[go](https://x.y/?a&b)"),
        *(('<c r="A1" t="e"><v>#DIV/0!</v></c>', "#DIV/0!"), ('<c r="A1" t="b"><v>1</v></c>', "true")),
        *(('<c r="A1" t="s"><v>0</v></c>', "rich"), ('<c r="A1" t="d"><v>2025-03-04</v></c>', "2025-03-04")),
        *((text("A1", "a_x000A_b &lt;c&gt;"), "a\nb <c>"), (number("A1", "0.256", PERCENT), "25.6%")),
        *((number("A1", "123", ZEROS), "000123"), (number("A1", "45000", CHINESE_DATE), "2023-03-15")),
        (number("A1", "45000.75", DATE_TIME), "2023-03-15 18:00:00"),
        *((number("A1", "0.5", TIME), "12:00:00"), (number("A1", "1.5", SPAN), "36:00:00")),
        *((number("A1", "1234.5", MONEY), "1234.5"), (number("A1", "110101199003071234"), "110101199003071234")),
        *((number("A1", "0.30000000000000004"), "0.3"), (number("A1", "1E+20"), "100000000000000000000")),
        (number("A1", "1", 99), "1"),
    ],
)
def test_D6_a_cell_shows_what_a_person_sees(inner: str, expected: str):
    assert cell(inner) == expected


def test_D6_links_and_comments_of_cells_are_read():
    rows = f'<row r="1">{text("A1", "shop")}{text("B1", "plain")}</row>'
    linked = '<hyperlinks><hyperlink ref="A1:A2" r:id="h"/></hyperlinks>'
    comment_xml = '<comment ref="B1"><text><r><t>why?</t></r></text></comment>'
    parts = {
        "xl/worksheets/_rels/sheet1.xml.rels": relations(h="https://x.y/?a=1&amp;b=2", c="../comments1.xml"),
        "xl/comments1.xml": f"<comments {MAIN}><commentList>{comment_xml}</commentList></comments>",
    }
    reading = read(book(rows, linked, **parts), "xlsx")
    assert reading.cells() == [("[shop](https://x.y/?a=1&b=2)", "plain")]
    assert reading.texts("note") == ["[comment on B1] why?"]


def test_D6_cells_that_do_not_say_where_they_are_follow_one_another():
    rows = "<row><c><v>1</v></c><c><v>2</v></c></row><row><c/><c><v>3</v></c></row>"
    assert read(book(rows), "xlsx").cells() == [("1", "2"), ("", "3")]


def test_D6_cells_of_an_ods_show_what_a_person_sees():
    value = '<table:table-cell office:value-type="{}" office:value="{}"><text:p>{}</text:p></table:table-cell>'
    hyperlink = '<text:a xlink:href="https://x.y/?a=1&amp;b=2">shop</text:a>'
    cells = value.format("percentage", "0.256", "25.6%") + value.format("float", "123", "000123")
    cells += value.format("float", "0", "#DIV/0!") + value.format("float", "1234.5", "1,234.50")
    cells += f'<table:table-cell office:value-type="string"><text:p>see {hyperlink}</text:p></table:table-cell>'
    data = open_document("spreadsheet", f'<table:table table:name="A">{table_row(cells)}</table:table>')
    rows = read(data, "ods").cells()
    assert rows == [("25.6%", "000123", "#DIV/0!", "1234.5", "see [shop](https://x.y/?a=1&b=2)")]


def test_D6_rows_out_of_order_and_told_twice_lose_nothing():
    rows = f'<row r="3">{text("A3", "c")}</row><row r="1">{text("A1", "a")}</row><row r="3">{text("B3", "d")}</row>'
    assert read(book(rows), "xlsx").cells() == [("a", ""), ("", ""), ("c", "d")]


@pytest.mark.parametrize("place", ["", "A0", "AAAA1", "A" + "9" * 5_000, "éé"])
def test_D6_a_cell_at_an_impossible_place_is_read(place: str):
    assert read(book(f'<row r="{"9" * 5_000}">{number(place, "7")}</row>'), "xlsx").cells() == [("7",)]


@pytest.mark.parametrize("value", ["", "x", "9" * 5_000, "NaN", "1E+999999", "-1"])
@pytest.mark.parametrize("kind", ["s", "b", "n", "e"])
def test_D6_an_impossible_value_does_no_harm(kind: str, value: str):
    inner = "".join(f'<c t="{kind}" s="{style}"><v>{value}</v></c>' for style in range(len(STYLES)))
    assert read(book(f"<row>{inner}</row>"), "xlsx").start.page_count == 1


def test_D6_a_sheet_that_is_damaged_says_so():
    assert bodies(read(book("", **{"xl/worksheets/sheet1.xml": ""}), "xlsx")) == [NOT_READ]


@given(some.dictionaries(some.tuples(some.integers(1, 2_000), some.integers(1, 200)), some.just("x"), max_size=30))
def test_D6_no_cell_is_lost_wherever_it_is(places: dict[tuple[int, int], str]):
    lines = [(row, [(column, words)]) for (row, column), words in places.items()]
    texts = [one for element in sheet_elements(lines) for row in element.rows for one in row if one]
    assert len(texts) == len(places)


@given(some.integers(0, 400), some.none() | some.text(max_size=12), some.text(max_size=12) | some.floats().map(str))
def test_D6_no_format_and_no_number_is_too_odd_to_be_shown(style: int, code: str | None, value: str):
    assert isinstance(format_value(value, shape_of(style, code), from_1904=True), str)
