"""D6: items have the numbers that their document shows, or none."""

import pytest

from recto.files.parsing.formats.counting import Labels, format_number
from recto.files.parsing.formats.office.letters import docx_labels
from recto.files.parsing.formats.office.opendocument import odt_labels
from tests.files.parsing.hostile import WORD, docx, laughs, paragraph
from tests.files.parsing.office import open_document
from tests.files.parsing.reading import read

LIST = "{}".join(("<w:p><w:pPr>", "</w:pPr><w:r><w:t>", "</w:t></w:r></w:p>"))


def item(words: str, level: int = 0, name: str = "1", style: str = "") -> str:
    problem = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{name}"/></w:numPr>' if name else ""
    return LIST.format((f'<w:pStyle w:val="{style}"/>' if style else "") + problem, words)


def level(number: int, pattern: str, way: str = "decimal", start: int = 1) -> str:
    inner = f'<w:start w:val="{start}"/><w:numFmt w:val="{way}"/><w:lvlText w:val="{pattern}"/>'
    return f'<w:lvl w:ilvl="{number}">{inner}</w:lvl>'


def letter(body: str, *levels: str, more: str = "", head: str = "") -> bytes:
    """Return a docx with one list of these levels. `more` are lists that share its counter."""
    kinds = f'<w:abstractNum w:abstractNumId="0">{"".join(levels)}</w:abstractNum>'
    lists = f'<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>{more}'
    numbering = f'{head}<w:numbering xmlns:w="{WORD}">{kinds}{lists}</w:numbering>'
    style = '<w:style w:styleId="{}"><w:basedOn w:val="{}"/>{}</w:style>'
    of_list = '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'
    styles = style.format("Clause", "Inner", "") + style.format("Inner", "Clause", of_list)
    parts = {
        "word/numbering.xml": numbering.encode(),
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>'.encode(),
    }
    return docx(body, parts=parts)


def labels_of(labels: Labels, *words: str) -> list[str | None]:
    return [labels.take(one) for one in words]


def open_text(body: str) -> bytes:
    number = '<text:list-level-style-number text:level="{}" style:num-format="1" style:num-suffix="." {}/>'
    levels = number.format(1, 'text:start-value="3"') + number.format(2, 'text:display-levels="2"')
    style = f'<text:list-style style:name="L">{levels}</text:list-style>'
    return open_document("text", body, styles=f"<office:automatic-styles>{style}</office:automatic-styles>")


def open_list(*items: str, problem: str = "") -> str:
    items_xml = "".join(f"<text:list-item><text:p>{one}</text:p></text:list-item>" for one in items)
    return f'<text:list text:style-name="L" {problem}>{items_xml}</text:list>'


def test_D6_a_list_of_a_docx_goes_on_after_a_paragraph():
    body = item("one") + item("two") + paragraph("between") + item("three")
    assert read(letter(body, level(0, "%1.")), "docx").text == "1. one\n2. two\n\nbetween\n\n3. three"


DECIMAL = level(0, "%1.")
LEVELS = (level(0, "第%1条", "chineseCounting", 9), level(1, "%1.%2)", "upperLetter"))
OLDER = f'<mc:Fallback xmlns:mc="mc">{item("old")}</mc:Fallback>'
ANEW = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
OTHER = f'<w:num w:numId="2"><w:abstractNumId w:val="0"/>{ANEW}</w:num>'
STYLED = item("a", name="", style="Clause") + item("b", name="0", style="Clause") + item("c", name="", style="Inner")
NUMBERING = {
    "levels count within one another, each in its way": (
        letter(item("a") + item("b", 1) + item("c", 1) + item("d") + item("e", 1), *LEVELS),
        ["第九条", "九.A)", "九.B)", "第十条", "十.A)"],
    ),
    "a list that begins anew does so once": (
        letter(item("a") + item("b", name="2") + item("c", name="2") + item("d"), DECIMAL, more=OTHER),
        ["1.", "5.", "6.", "7."],
    ),
    "a style may number and a paragraph may say that it is not": (letter(STYLED, DECIMAL), ["1.", None, "2."]),
    "items that only older programs show are not counted": (
        letter(item("a") + OLDER + item("b"), DECIMAL),
        ["1.", "2."],
    ),
    "numbering that declares entities is not read": (letter(item("a"), DECIMAL, head=laughs("w:numbering")), [None]),
    **{f"unknown way {way!r}": (letter(item("a"), level(0, "%1.", way)), ["-"]) for way in ("bullet", "none", "x", "")},
}


@pytest.mark.parametrize("case", NUMBERING)
def test_D6_items_of_a_docx_have_the_numbers_that_it_shows(case: str):
    data, expected = NUMBERING[case]
    assert labels_of(docx_labels(data), *"abcde"[: len(expected)]) == expected


def test_D6_items_with_the_same_words_and_with_notes_have_their_own_numbers():
    labels = docx_labels(letter(item("a b") + item("a &amp; c") + item("a b"), level(0, "%1.")))
    assert labels_of(labels, "a\tb[^2]", "a b", "a & c[cmt:0]", "a b") == ["1.", "3.", "2.", None]


@pytest.mark.parametrize("value", ["", "-1", "9" * 5_000, "x", "%9"])
def test_D6_numbering_that_makes_no_sense_does_no_harm(value: str):
    broken = f'<w:lvl w:ilvl="{value}"><w:start w:val="{value}"/><w:lvlText w:val="%1{value}%9"/></w:lvl>'
    body = f'<w:p><w:pPr><w:numPr><w:ilvl w:val="{value}"/><w:numId w:val="1"/></w:numPr></w:pPr></w:p>{item("a", 7)}'
    assert labels_of(docx_labels(letter(body, broken)), "a") == ["-"]


def test_D6_a_list_of_an_odt_goes_on_only_where_it_says_so():
    body = open_list("a", "b", problem='xml:id="x"') + open_list("c") + open_list("d", problem='text:continue-list="x"')
    body += open_list("e", problem='text:continue-numbering="true"')
    assert labels_of(odt_labels(open_text(body)), *"abcde") == ["3.", "4.", "3.", "5.", "6."]
    assert "5. d" in read(open_text(body), "odt").text


def test_D6_items_of_an_odt_within_others_show_both_numbers():
    inner = "<text:list><text:list-item><text:p>in <text:span>it</text:span></text:p></text:list-item></text:list>"
    first = f"<text:list-item><text:p>out</text:p>{inner}</text:list-item>"
    after = "<text:list-item><text:p>next</text:p></text:list-item>"
    body = f'<text:list text:style-name="L">{first}{after}</text:list>'
    assert labels_of(odt_labels(open_text(body)), "out", "in it", "next") == ["3.", "3.1.", "4."]


@pytest.mark.parametrize("between", ["", r"\pard\outlinelevel0 Head\par "])
def test_D6_where_a_format_does_not_tell_the_number_none_is_told(between: str):
    items_xml = r"{\listtext 1.\tab}\ls1\ilvl0 "
    table = r"{\*\listtable{\list{\listlevel\levelnfc0{\leveltext\'02\'00.;}}\listid1}}"
    over = r"{\*\listoverridetable{\listoverride\listid1\ls1}}"
    text = rf"{{\rtf1\ansi{table}{over}\pard{items_xml}one\par \pard plain\par {between}\pard{items_xml}two\par}}"
    items = read(text.encode(), "rtf").texts("item")
    assert items == ["1. one", "- two" if not between else "1. two"]


@pytest.mark.parametrize(
    ("number", "way", "expected"),
    [
        *((4, "lowerRoman", "iv"), (1994, "upperRoman", "MCMXCIV"), (28, "lowerLetter", "bb")),
        *((10, "chineseCounting", "十"), (21, "chineseCounting", "二十一"), (7, "decimalZero", "07")),
        *((3, "decimalEnclosedCircle", "③"), (0, "decimal", "0")),
    ],
)
def test_D6_a_number_is_written_in_its_way(number: int, way: str, expected: str):
    assert format_number(number, way) == expected
