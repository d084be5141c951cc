"""D6: what stands on slides, whichever way programs write it."""

import zipfile
from io import BytesIO

import pytest

from recto.files.parsing.formats.archive import MOST_BYTES
from recto.files.parsing.ports import Opened
from tests.files.parsing.reading import read

SPACES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)
TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def run(text: str, link: str = "") -> str:
    clicked = f'<a:rPr><a:hlinkClick r:id="{link}"/></a:rPr>' if link else ""
    return f"<a:r>{clicked}<a:t>{text}</a:t></a:r>"


def shape(*paragraphs: str, role: str = "") -> str:
    kind = f'<p:ph type="{role}"/>' if role else ""
    lines = "".join(f"<a:p>{one}</a:p>" for one in paragraphs)
    return f"<p:sp><p:nvSpPr><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"


def relations(**targets: str) -> str:
    listed = "".join(
        f'<Relationship Id="{key}" Type="{TYPE}/x" Target="{target}"'
        + (' TargetMode="External"/>' if ":" in target else "/>")
        for key, target in targets.items()
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{listed}</Relationships>'
    )


def deck(slide: str, head: str = "", problem: str = "", **more: str) -> bytes:
    """A presentation of one slide; `told` are attributes of it."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            "ppt/presentation.xml",
            f'<p:presentation {SPACES}><p:sldIdLst><p:sldId r:id="s1"/></p:sldIdLst></p:presentation>',
        )
        archive.writestr("ppt/_rels/presentation.xml.rels", relations(s1="slides/slide1.xml"))
        archive.writestr("ppt/slides/slide1.xml", f"{head}<p:sld {SPACES} {problem}>{slide}</p:sld>")
        targets = {"l1": "https://example.com/a", "l2": "https://example.com/b", "d1": "../diagrams/data1.xml"}
        targets |= {"c1": "../charts/chart1.xml", "k1": "../comments/comment1.xml", "k2": "../comments/modern.xml"}
        archive.writestr("ppt/slides/_rels/slide1.xml.rels", relations(**targets))
        for name, text in more.items():
            archive.writestr(name, text)
    return out.getvalue()


def lines(data: bytes) -> list[str]:
    return [one.text for one in read(data, "pptx").elements][1:]


def test_D6_letters_that_are_formatted_apart_are_one_word():
    assert lines(deck(shape(run("hel") + run("lo ") + run("第") + run("1") + run("张")))) == ["hello 第1张"]


def test_D6_a_title_stands_first_and_what_every_slide_has_is_left_out():
    furniture = shape(run("7"), role="sldNum") + shape(run("2025"), role="dt")
    data = deck(furniture + shape(run("body"), role="body") + shape(run("Title"), role="ctrTitle"))
    assert lines(data) == ["## Title", "body"]


def test_D6_neighbours_that_lead_to_one_place_are_one_link():
    data = deck(shape(run("see ") + run("the ", "l1") + run("report", "l1") + run("here", "l2")))
    assert lines(data) == ["see [the report](https://example.com/a)[here](https://example.com/b)"]


def test_D6_points_below_points_are_nested():
    points = shape(run("top"), '<a:pPr lvl="1"/>' + run("below"), '<a:pPr><a:buChar char="-"/></a:pPr>' + run("mark"))
    data = deck(points + shape('<a:pPr lvl="many"/>' + run("odd")))
    assert lines(data) == ["top", "  - below", "- mark", "odd"]


def test_D6_what_only_older_programs_show_is_not_read_twice():
    inner = f"<mc:Choice>{shape(run('once'))}</mc:Choice><mc:Fallback>{shape(run('once'))}</mc:Fallback>"
    assert lines(deck(f"<mc:AlternateContent>{inner}</mc:AlternateContent>")) == ["once"]


def test_D6_words_in_diagrams_are_read():
    drawn = f"<x {SPACES}><a:p>{run('Plan')}</a:p><a:p>{run('Do')}</a:p></x>"
    assert lines(deck(shape(run("words")), **{"ppt/diagrams/data1.xml": drawn})) == ["words", "Plan", "Do"]


def test_D6_a_damaged_slide_says_so_and_the_rest_is_read():
    reading = read(deck("<unclosed>"), "pptx")
    assert reading.opened == Opened(unit="slide", page_count=1)
    assert reading.text == "[slide 1]\n\n[slide 1 is damaged and cannot be read]"


def test_D6_a_slide_too_large_to_read_says_so():
    assert lines(deck(shape(run("x" * (MOST_BYTES + 1))))) == ["[slide 1 is too large to be read]"]


@pytest.mark.parametrize("slide", ["\0", ""])
def test_D6_an_empty_slide_is_empty(slide: str):
    assert lines(deck(slide)) == []


def test_D6_a_slide_that_declares_entities_is_not_read():
    head = '<!DOCTYPE x [<!ENTITY e "grow">]>'
    assert lines(deck(shape(run("&e;")), head)) == ["[slide 1 is damaged and cannot be read]"]


CHART = '<p:graphicFrame><a:graphicData><c:chart r:id="c1"/></a:graphicData></p:graphicFrame>'


def picture(words: str = "") -> str:
    return f'<p:pic><p:nvPicPr><p:cNvPr id="1" descr="{words}"/></p:nvPicPr></p:pic>'


def series(name: str, *values: str) -> str:
    def points(*texts: str) -> str:
        return "".join(f'<c:pt idx="{place}"><c:v>{text}</c:v></c:pt>' for place, text in enumerate(texts))

    parts = {"tx": points(name), "cat": points("Q1", "Q2"), "val": points(*values)}
    return f"<c:ser>{''.join(f'<c:{tag}>{inner}</c:{tag}>' for tag, inner in parts.items())}</c:ser>"


def chart(*columns: str, title: str = "") -> str:
    named = f"<c:title><a:p>{run(title)}</a:p></c:title>" if title else ""
    return (
        f"<c:chartSpace {SPACES}><c:chart>{named}<c:barChart>{''.join(columns)}</c:barChart></c:chart></c:chartSpace>"
    )


def test_D6_a_chart_is_the_table_it_was_drawn_from():
    drawn = chart(series("North", "1", "2"), series("South", "3"), title="Sales")
    reading = read(deck(CHART, **{"ppt/charts/chart1.xml": drawn}), "pptx")
    assert reading.texts("paragraph") == ["[chart: Sales]"]
    assert reading.cells() == [("", "North", "South"), ("Q1", "1", "3"), ("Q2", "2", "")]


@pytest.mark.parametrize("drawn", ["", "<c:ser", chart(), chart('<c:ser><c:val><c:pt idx="-1"/></c:val></c:ser>')])
def test_D6_a_chart_that_is_damaged_does_no_harm(drawn: str):
    reading = read(deck(CHART + shape(run("words")), **{"ppt/charts/chart1.xml": drawn}), "pptx")
    assert reading.cells() == []
    assert reading.texts("paragraph")[-1] == "words"


def test_D6_pictures_are_described_and_one_alone_says_that_it_is_no_text():
    assert lines(deck(shape(run("words")) + picture("a&#10;map"))) == ["words", "[image: a map]"]
    assert lines(deck(picture())) == ["[slide 1 has no text: it is a picture]"]
    assert lines(deck(picture("a map"))) == ["[image: a map]", "[slide 1 has no text: it is a picture]"]


def test_D6_comments_on_a_slide_are_read():
    older = f"<p:cmLst {SPACES}><p:cm><p:text>why?</p:text></p:cm></p:cmLst>"
    said = f"<n:txBody><a:p>{run('be')}{run('cause')}</a:p></n:txBody>"
    newer = f'<n:cmLst xmlns:n="n" {SPACES}><n:cm>{said}</n:cm></n:cmLst>'
    parts = {"ppt/comments/comment1.xml": older, "ppt/comments/modern.xml": newer}
    assert lines(deck(shape(run("words")), **parts)) == ["words", "[comment] why?", "[comment] because"]


def test_D6_a_hidden_slide_says_so():
    assert read(deck(shape(run("words")), problem='show="0"'), "pptx").text == "[slide 1 (hidden)]\n\nwords"


def test_D6_numbered_points_have_their_numbers():
    def point(kind: str, words: str, level: int = 0, problem: str = "") -> str:
        return f'<a:pPr lvl="{level}"><a:buAutoNum type="{kind}" {problem}/></a:pPr>{run(words)}'

    first = [point("arabicPeriod", "a"), point("alphaLcParenR", "b", 1), point("arabicPeriod", "c"), run("plain")]
    later = [point("arabicPeriod", "d"), point("romanUcParenBoth", "e", 1, 'startAt="4"'), point("odd", "f", 2)]
    expected = ["1. a", "  a) b", "2. c", "plain", "1. d", "  (IV) e", "    - f"]
    assert lines(deck(shape(*first, *later))) == expected
