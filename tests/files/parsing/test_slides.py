"""D6: content of slides, in the forms that programs write."""

import pytest

from recto.files.parsing.formats.archive import MOST_BYTES
from recto.files.parsing.ports import DocumentStart
from tests.files.parsing.hostile import package
from tests.files.parsing.office import relations
from tests.files.parsing.reading import read

SPACES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)


def run(text: str, link: str = "") -> str:
    clicked = f'<a:rPr><a:hlinkClick r:id="{link}"/></a:rPr>' if link else ""
    return f"<a:r>{clicked}<a:t>{text}</a:t></a:r>"


def shape(*paragraphs: str, role: str = "") -> str:
    kind = f'<p:ph type="{role}"/>' if role else ""
    lines = "".join(f"<a:p>{one}</a:p>" for one in paragraphs)
    return f"<p:sp><p:nvSpPr><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"


def deck(slide: str, head: str = "", attributes: str = "", **more: str) -> bytes:
    targets = {"l1": "https://example.com/a", "l2": "https://example.com/b", "d1": "../diagrams/data1.xml"}
    targets |= {"c1": "../charts/chart1.xml", "k1": "../comments/comment1.xml", "k2": "../comments/modern.xml"}
    slide_list = '<p:sldIdLst><p:sldId r:id="s1"/></p:sldIdLst>'
    return package(
        {
            "ppt/presentation.xml": f"<p:presentation {SPACES}>{slide_list}</p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(s1="slides/slide1.xml"),
            "ppt/slides/slide1.xml": f"{head}<p:sld {SPACES} {attributes}>{slide}</p:sld>",
            "ppt/slides/_rels/slide1.xml.rels": relations(**targets),
            **more,
        }
    )


def lines(data: bytes) -> list[str]:
    return [one.text for one in read(data, "pptx").elements][1:]


def picture(words: str = "") -> str:
    return f'<p:pic><p:nvPicPr><p:cNvPr id="1" descr="{words}"/></p:nvPicPr></p:pic>'


def point(kind: str, words: str, level: int = 0, more: str = "") -> str:
    return f'<a:pPr lvl="{level}"><a:buAutoNum type="{kind}" {more}/></a:pPr>{run(words)}'


FURNITURE = shape(run("7"), role="sldNum") + shape(run("2025"), role="dt")
POINTS = shape(run("top"), '<a:pPr lvl="1"/>' + run("below"), '<a:pPr><a:buChar char="-"/></a:pPr>' + run("mark"))
NUMBERING = shape(
    *(point("arabicPeriod", "a"), point("alphaLcParenR", "b", 1), point("arabicPeriod", "c"), run("plain")),
    *(point("arabicPeriod", "d"), point("romanUcParenBoth", "e", 1, 'startAt="4"'), point("odd", "f", 2)),
)
NEW_AND_OLD = f"<mc:Choice>{shape(run('once'))}</mc:Choice><mc:Fallback>{shape(run('once'))}</mc:Fallback>"
SLIDES: dict[str, tuple[str, list[str]]] = {
    "letters formatted apart are one word": (
        shape(run("hel") + run("lo ") + run("第") + run("1") + run("张")),
        ["hello 第1张"],
    ),
    "a title stands first and what every slide has is left out": (
        FURNITURE + shape(run("body"), role="body") + shape(run("Title"), role="ctrTitle"),
        ["## Title", "body"],
    ),
    "neighbours that lead to one place are one link": (
        shape(run("see ") + run("the ", "l1") + run("report", "l1") + run("here", "l2")),
        ["see [the report](https://example.com/a)[here](https://example.com/b)"],
    ),
    "points below points are nested": (
        POINTS + shape('<a:pPr lvl="many"/>' + run("odd")),
        ["top", "  - below", "- mark", "odd"],
    ),
    "numbered points": (NUMBERING, ["1. a", "  a) b", "2. c", "plain", "1. d", "  (IV) e", "    - f"]),
    "what only older programs show is not read twice": (
        f"<mc:AlternateContent>{NEW_AND_OLD}</mc:AlternateContent>",
        ["once"],
    ),
    "a picture beside words is described": (shape(run("words")) + picture("a&#10;map"), ["words", "[image: a map]"]),
    "a picture alone": (picture(), ["[slide 1 has no text: it is a picture]"]),
    "a described picture alone": (picture("a map"), ["[image: a map]", "[slide 1 has no text: it is a picture]"]),
    "nothing": ("", []),
    "a character that is none": ("\0", []),
}


@pytest.mark.parametrize("case", SLIDES)
def test_D6_words_on_a_slide_are_read_as_people_see_them(case: str):
    slide, expected = SLIDES[case]
    assert lines(deck(slide)) == expected


def test_D6_diagrams_and_comments_of_a_slide_are_read_and_a_hidden_one_says_so():
    comment_xml = f"<n:txBody><a:p>{run('be')}{run('cause')}</a:p></n:txBody>"
    parts = {
        "ppt/diagrams/data1.xml": f"<x {SPACES}><a:p>{run('Plan')}</a:p><a:p>{run('Do')}</a:p></x>",
        "ppt/comments/comment1.xml": f"<p:cmLst {SPACES}><p:cm><p:text>why?</p:text></p:cm></p:cmLst>",
        "ppt/comments/modern.xml": f'<n:cmLst xmlns:n="n" {SPACES}><n:cm>{comment_xml}</n:cm></n:cmLst>',
    }
    expected = ["[slide 1 (hidden)]", "words", "Plan", "Do", "[comment] why?", "[comment] because"]
    data = deck(shape(run("words")), attributes='show="0"', **parts)
    assert [one.text for one in read(data, "pptx").elements] == expected


def test_D6_a_damaged_slide_says_so_and_the_rest_is_read():
    reading = read(deck("<unclosed>"), "pptx")
    assert reading.start == DocumentStart(unit="slide", page_count=1)
    assert reading.text == "[slide 1]\n\n[slide 1 is damaged and cannot be read]"
    entities = deck(shape(run("&e;")), '<!DOCTYPE x [<!ENTITY e "grow">]>')
    assert read(entities, "pptx").text == reading.text


@pytest.mark.full
def test_D6_a_slide_too_large_to_read_says_so():
    assert lines(deck(shape(run("x" * (MOST_BYTES + 1))))) == ["[slide 1 is too large to be read]"]


CHART = '<p:graphicFrame><a:graphicData><c:chart r:id="c1"/></a:graphicData></p:graphicFrame>'


def series(name: str, *values: str) -> str:
    def points(*texts: str) -> str:
        return "".join(f'<c:pt idx="{place}"><c:v>{text}</c:v></c:pt>' for place, text in enumerate(texts))

    parts = {"tx": points(name), "cat": points("Q1", "Q2"), "val": points(*values)}
    return f"<c:ser>{''.join(f'<c:{tag}>{inner}</c:{tag}>' for tag, inner in parts.items())}</c:ser>"


def chart(*columns: str, title: str = "") -> str:
    title_xml = f"<c:title><a:p>{run(title)}</a:p></c:title>" if title else ""
    content = f"{title_xml}<c:barChart>{''.join(columns)}</c:barChart>"
    return f"<c:chartSpace {SPACES}><c:chart>{content}</c:chart></c:chartSpace>"


def test_D6_a_chart_is_the_table_it_was_drawn_from():
    chart_xml = chart(series("North", "1", "2"), series("South", "3"), title="Sales")
    reading = read(deck(CHART, **{"ppt/charts/chart1.xml": chart_xml}), "pptx")
    assert reading.texts("paragraph") == ["[chart: Sales]"]
    assert reading.cells() == [("", "North", "South"), ("Q1", "1", "3"), ("Q2", "2", "")]


@pytest.mark.parametrize("chart_xml", ["", "<c:ser", chart(), chart('<c:ser><c:val><c:pt idx="-1"/></c:val></c:ser>')])
def test_D6_a_chart_that_is_damaged_does_no_harm(chart_xml: str):
    reading = read(deck(CHART + shape(run("words")), **{"ppt/charts/chart1.xml": chart_xml}), "pptx")
    assert reading.cells() == []
    assert reading.texts("paragraph")[-1] == "words"
