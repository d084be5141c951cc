"""OpenDocument files: text, sheets, slides and drawings, from their XML."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import chain
from xml.etree import ElementTree

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import Archive, read_xml
from recto.files.parsing.formats.counting import Labels, format_number
from recto.files.parsing.formats.tables import table_elements, trim_rows
from recto.files.parsing.formats.xberg_document import SPEAKER_NOTES, link, note, title

_SPACE = "{urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, OFFICE = (f"{_SPACE}{name}:1.0}}" for name in ("text", "table", "office"))
CHART = f"{_SPACE}chart:1.0}}"
HREF = "{http://www.w3.org/1999/xlink}href"
_PARAGRAPHS = (f"{TEXT}p", f"{TEXT}h")
_ITEMS = (f"{TEXT}list-item", f"{TEXT}list-header")
_CELLS = (f"{TABLE}table-cell", f"{TABLE}covered-table-cell")
# Comments and notes inside of text.
_NO_WORDS = (f"{OFFICE}annotation", f"{TEXT}note")
_INDENT = "  "
# Most repetitions of a cell or blank. Cells with more are empty and fill the sheet.
_MOST_REPEATED = 100
_NOT_A_NUMBER = ("NaN", "1.#NAN")


def text_elements(box: ElementTree.Element, level: int = 0) -> Iterator[Element]:
    """Yield the paragraphs and lists of a box in order."""
    for one in box:
        if one.tag in _PARAGRAPHS and (text := words(one).strip()):
            item = Element(kind="item", text=f"{_INDENT * (level - 1)}- {text}", level=level)
            yield item if level else Element(kind="paragraph", text=text)
        elif one.tag == f"{TEXT}list":
            for item in one:
                yield from text_elements(item, level + 1) if item.tag in _ITEMS else ()


def words(paragraph: ElementTree.Element) -> str:
    """Return the text of a paragraph with its links."""
    return (paragraph.text or "") + "".join(_within(one) + (one.tail or "") for one in paragraph)


def _within(one: ElementTree.Element) -> str:
    match one.tag.removeprefix(TEXT):
        case "s":
            count = one.get(f"{TEXT}c", "1")
            return " " * min(_MOST_REPEATED, int(count) if count.isdecimal() else 1)
        case "tab":
            return "\t"
        case "line-break":
            return "\n"
        case "a":
            return link(words(one), one.get(HREF, ""))
        case _:
            return "" if one.tag in _NO_WORDS else words(one)


def table(one: ElementTree.Element) -> Iterator[Element]:
    """Yield a table. The text of a merged cell is in its first place."""
    rows = list[list[str]]()
    for row in one.iter(f"{TABLE}table-row"):
        rows.append([])
        for cell in [cell for cell in row if cell.tag in _CELLS]:
            times = cell.get(f"{TABLE}number-columns-repeated", "1")
            text = "\n".join(words(part) for part in cell.iter() if part.tag in _PARAGRAPHS)
            count = min(_MOST_REPEATED, int(times) if times.isdecimal() else 1)
            rows[-1] += ["" if text in _NOT_A_NUMBER else text] * count
    yield from table_elements(trim_rows(rows))


def chart(archive: Archive, href: str) -> Iterator[Element]:
    """Yield the table of an embedded chart; nothing for other objects."""
    root = read_xml(archive, posixpath.normpath(f"{href}/content.xml"))
    root_element = next(root.iter(f"{CHART}chart"), None) if root is not None else None
    if root_element is None:
        return
    name = root_element.find(f"{CHART}title")
    text = " ".join(" ".join(words(one) for one in name).split()) if name is not None else ""
    yield Element(kind="paragraph", text=f"[chart: {text}]" if text else "[chart]")
    for one in root_element.iter(f"{TABLE}table"):
        yield from table(one)


_CONTENT = "content.xml"
_COVERED = re.compile(r"<table:covered-table-cell\b([^>]*?)(?:/>|>.*?</table:covered-table-cell>)", re.DOTALL)
_TIMES = re.compile(r'table:number-columns-repeated="(\d{1,3})"')
_REMARK = re.compile(r"<office:annotation\b[^>]*?(?:/>|>(.*?)</office:annotation>)", re.DOTALL)
_PARAGRAPH = re.compile(r"<text:(p|h)\b[^>]*>(.*?)</text:\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_BOX_OR_PARAGRAPH = re.compile(r"<(/?)(draw:text-box|text:[ph])(?:\s[^>]*)?(?<!/)>")
_BOX = "draw:text-box"
_OBJECT_OR_PARAGRAPH = re.compile(
    r'<draw:object\b[^>]*?\bxlink:href="([^"]*)"|<(/?)text:[ph](?:\s[^>]*)?(?<!/)>', re.DOTALL
)
# Starts and ends of lists, items and paragraphs.
_TOKEN = re.compile(r"<(/?)text:(list|list-item|p|h)((?:\s[^>]*)?)>")
_STYLE = re.compile(r"<text:list-style\s([^>]*)>(.*?)</text:list-style>", re.DOTALL)
_LEVEL = re.compile(r"<text:list-level-style-number\s([^>]*?)/?>")
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
_NOTE = re.compile(r"<text:note\b.*?</text:note>", re.DOTALL)
_LONGEST = 8
_WAYS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_WAYS_OF_EAST = {"一, 二, 三, ...": "chineseCounting", "①, ②, ③, ...": "decimalEnclosedCircle"}
Attributes = Mapping[str, str]
Style = Mapping[str, Attributes]


@dataclass(kw_only=True)
class _List:
    """An open list, with the last number of each level."""

    name: str
    counts: dict[int, int] = field(default_factory=dict[int, int])


def prepare_odt(data: bytes) -> bytes:
    """Rewrite an odt for xberg. Return the document unchanged if it is too large.

    Insert the tables of charts and the covered cells of merged ones. Turn comments and text boxes into text.
    """
    archive = Archive(data)
    text = archive.text(_CONTENT)
    charted = "".join(_insert_charts(text, archive)) if "<draw:object" in text else text
    changed = "".join(_inline_boxes(_REMARK.sub(_remark, _COVERED.sub(_empty_cells, charted))))
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


def odt_labels(data: bytes) -> Labels:
    """Return the labels of the list items of an odt."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    styles = {**_styles(archive.text("styles.xml")), **_styles(text)}
    return Labels(_labels(_NOTE.sub("", text), styles))


def _insert_charts(text: str, archive: Archive) -> Iterator[str]:
    """Insert the table of each chart after the paragraph that contains it."""
    charts, depth, done = list[str](), 0, 0
    for match in _OBJECT_OR_PARAGRAPH.finditer(text):
        if match[1] is not None:
            charts += map(_xml_of, chart(archive, match[1]))
            continue
        depth += -1 if match[2] else 1
        if depth == 0 and charts:
            yield text[done : match.end()] + "".join(charts)
            charts, done = [], match.end()
    yield text[done:]


def _xml_of(element: Element) -> str:
    """Return a paragraph or a table as XML."""
    if not element.rows:
        return f"<text:p>{escape(element.text)}</text:p>"
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    rows = ("".join(cell.format(escape(text)) for text in row) for row in element.rows)
    return f"<table:table>{''.join(f'<table:table-row>{row}</table:table-row>' for row in rows)}</table:table>"


def _empty_cells(match: re.Match[str]) -> str:
    times = _TIMES.search(match[1])
    return "<table:table-cell/>" * (int(times[1]) if times else 1)


def _remark(match: re.Match[str]) -> str:
    words = " ".join(_TAG.sub("", one[2]) for one in _PARAGRAPH.finditer(match[1] or ""))
    return f"<text:span> [comment: {words}]</text:span>" if words.strip() else ""


def _inline_boxes(text: str) -> Iterator[str]:
    """Turn text boxes inside a paragraph into lines of the paragraph, because xberg would read them twice."""
    around: list[str] = []
    done = 0
    for match in _BOX_OR_PARAGRAPH.finditer(text):
        is_end, tag = match[1], match[2]
        if is_end and around:
            around.pop()
        if around and tag == _BOX:
            yield text[done : match.start()] + ("" if is_end else "<text:line-break/>")
            done = match.end()
        elif is_end and _BOX in around and len(around) > 1:
            yield text[done : match.end()] + "<text:line-break/>"
            done = match.end()
        if not is_end:
            around.append(tag)
    yield text[done:]


def _labels(text: str, styles: Mapping[str, Style]) -> Iterator[tuple[str, str]]:
    open_lists: list[_List] = []
    lists: dict[str, _List] = {}
    label: str | None = None
    start = 0
    for match in _TOKEN.finditer(text):
        attributes = _attributes(match[3])
        match match[1] + match[2]:
            case "list" if not match[3].endswith("/"):
                open_lists.append(open_lists[-1] if open_lists else _open_list(attributes, lists))
            case "/list" if open_lists:
                open_lists.pop()
            case "list-item" if open_lists:
                label = _count_item(open_lists[-1], len(open_lists), attributes, styles)
            case "p" | "h" if label is not None:
                start = match.end()
            case "/p" | "/h" if label is not None:
                yield unescape(_TAG.sub("", text[start : match.start()])), label
                label = None
            case _:
                pass


def _open_list(attributes: Attributes, lists: dict[str, _List]) -> _List:
    """Open a list of the outermost level, which may continue another."""
    name = attributes.get("text:style-name", "")
    before = lists.get(attributes["text:continue-list"]) if "text:continue-list" in attributes else None
    if before is None and attributes.get("text:continue-numbering") == "true":
        before = lists.get(name)
    one = _List(name=name or (before.name if before else ""), counts=before.counts if before else {})
    lists.update({one.name: one, attributes.get("xml:id", one.name): one})
    return one


def _count_item(one: _List, level: int, attributes: Attributes, styles: Mapping[str, Style]) -> str:
    style = styles.get(one.name, {})
    format = style.get(str(level), {})
    start = _whole(attributes.get("text:start-value", ""), _whole(format.get("text:start-value", ""), 1))
    is_anew = level not in one.counts or "text:start-value" in attributes
    one.counts[level] = start if is_anew else one.counts[level] + 1
    for deeper in [place for place in one.counts if place > level]:
        del one.counts[deeper]
    level_count = min(level, max(1, _whole(format.get("text:display-levels", ""), 1)))
    levels = range(level - level_count + 1, level + 1)
    ways = [style.get(str(place), {}).get("style:num-format", "") for place in levels]
    names = [_WAYS.get(way) or _WAYS_OF_EAST.get(way, "") for way in ways]
    numbers = [format_number(one.counts.get(place, 1), name) for place, name in zip(levels, names, strict=True)]
    if not all(numbers):
        return ""
    return f"{format.get('style:num-prefix', '')}{'.'.join(numbers)}{format.get('style:num-suffix', '')}".strip()


def _styles(text: str) -> Mapping[str, Style]:
    """Return the numbered levels of each list style."""
    styles: dict[str, Style] = {}
    for match in _STYLE.finditer(text):
        levels = [_attributes(level) for level in _LEVEL.findall(match[2])]
        styles[_attributes(match[1]).get("style:name", "")] = {level.get("text:level", ""): level for level in levels}
    return styles


def _attributes(tag: str) -> Attributes:
    return {name: unescape(value) for name, value in _ATTRIBUTE.findall(tag)}


def _whole(text: str, otherwise: int) -> int:
    return int(text) if text.isdecimal() and len(text) <= _LONGEST else otherwise


_CELL = re.compile(r"<table:table-cell\b([^>]*)>(?=<text:p>(?:[^<]*%|#[^<]*|0\d+)</text:p>)")
_VALUE = re.compile(r'\soffice:(?:value-type|value|string-value)="[^"]*"')
_SHEET_OR_OBJECT = re.compile(
    r'<table:table\s[^>]*?\btable:name="([^"]*)"|<draw:object\b[^>]*?\bxlink:href="([^"]*)"', re.DOTALL
)
_LINK = re.compile(r'<text:a\b[^>]*\bxlink:href="([^"]*)"[^>]*>([^<]*)</text:a>')


def prepare_ods(data: bytes) -> bytes:
    """Store percentages, errors and leading zeros as shown. Return the document unchanged if it is too large."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    cell = '<table:table-cell office:value-type="string"{}>'
    changed = _CELL.sub(lambda match: cell.format(_VALUE.sub("", match[1])), text)
    changed = _LINK.sub(lambda match: escape(link(unescape(match[2]), unescape(match[1]))), changed)
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


def sheet_charts(data: bytes) -> Callable[[str], Iterator[Element]]:
    """Return a function that yields the charts of a sheet as tables."""
    archive = Archive(data)
    hrefs: defaultdict[str, list[str]] = defaultdict(list)
    name = ""
    for match in _SHEET_OR_OBJECT.finditer(archive.text(_CONTENT)):
        name = unescape(match[1]) if match[1] is not None else name
        hrefs[name] += [match[2]] if match[2] else []
    return lambda name: chain.from_iterable(chart(archive, href) for href in hrefs.get(name, ()))


_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_SHOW = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_GROUPS = (f"{_DRAW}g", f"{_DRAW}a")
# Boxes that repeat on every slide.
_FURNITURE = ("page-number", "date-time", "header", "footer")
_TITLE = "title"


def drawing_pages(data: bytes) -> list[Iterator[Element]] | None:
    """Return the elements of each page of a drawing or slide of a presentation; None if it is damaged."""
    archive = Archive(data)
    root = read_xml(archive, _CONTENT)
    return None if root is None else [_page_elements(page, archive) for page in root.iter(f"{_DRAW}page")]


def _page_elements(page: ElementTree.Element, archive: Archive) -> Iterator[Element]:
    """Yield the content of a page: title, shapes, comments, speaker notes."""
    shapes = list(_shapes(page))
    for shape in shapes:
        if _role(shape) == _TITLE:
            yield from title(_all_words(shape))
    for shape in shapes:
        if _role(shape) not in (_TITLE, *_FURNITURE):
            yield from _shape_elements(shape, archive)
    for comment in page.findall(f"{OFFICE}annotation"):
        yield from note("[comment] ", _all_words(comment), None)
    notes = [_all_words(box) for box in page.findall(f"{_SHOW}notes/{_DRAW}frame") if _role(box) == "notes"]
    yield from note(SPEAKER_NOTES, "\n".join(notes), None)


def _shape_elements(shape: ElementTree.Element, archive: Archive) -> Iterator[Element]:
    if shape.tag != f"{_DRAW}frame":
        yield from text_elements(shape)
        return
    for one in shape:
        if one.tag == f"{_DRAW}text-box":
            yield from text_elements(one)
        elif one.tag == f"{TABLE}table":
            yield from table(one)
        elif one.tag == f"{_DRAW}object":
            yield from chart(archive, one.get(HREF, ""))
    about = shape.find(f"{_SVG}desc") if shape.find(f"{_DRAW}image") is not None else None
    if about is not None and (text := " ".join("".join(about.itertext()).split())):
        yield Element(kind="paragraph", text=f"[image: {text}]")


def _shapes(page: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Yield the shapes of a page, also from groups."""
    waiting = list(reversed(page))
    while waiting:
        one = waiting.pop()
        if one.tag in _GROUPS:
            waiting += reversed(one)
        elif one.tag.startswith(_DRAW):
            yield one


def _role(shape: ElementTree.Element) -> str:
    """Return the role of a box in the layout of its slide."""
    return shape.get(f"{_SHOW}class", "")


def _all_words(box: ElementTree.Element) -> str:
    return "\n".join(words(one) for one in box.iter(f"{TEXT}p"))
