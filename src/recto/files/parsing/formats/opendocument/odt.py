"""An odt beside what xberg reads of it: made ready for it, and the numbers of its lists. Keeps all words.

xberg drops charts and covered cells, and takes remarks for notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape, unescape

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import Archive
from recto.files.parsing.formats.counting import Labels, counted
from recto.files.parsing.formats.opendocument.odf import chart

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
# Where lists, items and paragraphs begin and end.
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
    """A list that is open. `counts` has the last number of each level."""

    name: str
    counts: dict[int, int] = field(default_factory=dict[int, int])


def ready(data: bytes) -> bytes:
    """The document as xberg reads it whole; as it is where it needs nothing or is too large."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    charted = "".join(_charted(text, archive)) if "<draw:object" in text else text
    changed = "".join(_unboxed(_REMARK.sub(_remark, _COVERED.sub(_empty, charted))))
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


def odt_labels(data: bytes) -> Labels:
    """What stands before the items of an odt."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    styles = {**_styles(archive.text("styles.xml")), **_styles(text)}
    return Labels(_labels(_NOTE.sub("", text), styles))


def _charted(text: str, archive: Archive) -> Iterator[str]:
    """The text with the table of each chart behind the paragraph that the chart stands in."""
    drawn, depth, done = list[str](), 0, 0
    for found in _OBJECT_OR_PARAGRAPH.finditer(text):
        if found[1] is not None:
            drawn += map(_written, chart(archive, found[1]))
            continue
        depth += -1 if found[2] else 1
        if depth == 0 and drawn:
            yield text[done : found.end()] + "".join(drawn)
            drawn, done = [], found.end()
    yield text[done:]


def _written(element: Element) -> str:
    """A paragraph or a table as XML."""
    if not element.rows:
        return f"<text:p>{escape(element.text)}</text:p>"
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    rows = ("".join(cell.format(escape(text)) for text in row) for row in element.rows)
    return f"<table:table>{''.join(f'<table:table-row>{row}</table:table-row>' for row in rows)}</table:table>"


def _empty(found: re.Match[str]) -> str:
    times = _TIMES.search(found[1])
    return "<table:table-cell/>" * (int(times[1]) if times else 1)


def _remark(found: re.Match[str]) -> str:
    words = " ".join(_TAG.sub("", one[2]) for one in _PARAGRAPH.finditer(found[1] or ""))
    return f"<text:span> [comment: {words}]</text:span>" if words.strip() else ""


def _unboxed(text: str) -> Iterator[str]:
    """The text with boxes that stand within a paragraph as lines of it: xberg would read them twice."""
    around: list[str] = []
    done = 0
    for found in _BOX_OR_PARAGRAPH.finditer(text):
        is_end, tag = found[1], found[2]
        if is_end and around:
            around.pop()
        if around and tag == _BOX:
            yield text[done : found.start()] + ("" if is_end else "<text:line-break/>")
            done = found.end()
        elif is_end and _BOX in around and len(around) > 1:
            yield text[done : found.end()] + "<text:line-break/>"
            done = found.end()
        if not is_end:
            around.append(tag)
    yield text[done:]


def _labels(text: str, styles: Mapping[str, Style]) -> Iterator[tuple[str, str]]:
    open_lists: list[_List] = []
    known: dict[str, _List] = {}
    label: str | None = None
    begun = 0
    for found in _TOKEN.finditer(text):
        given = _attributes(found[3])
        match found[1] + found[2]:
            case "list" if not found[3].endswith("/"):
                open_lists.append(open_lists[-1] if open_lists else _begun(given, known))
            case "/list" if open_lists:
                open_lists.pop()
            case "list-item" if open_lists:
                label = _counted(open_lists[-1], len(open_lists), given, styles)
            case "p" | "h" if label is not None:
                begun = found.end()
            case "/p" | "/h" if label is not None:
                yield unescape(_TAG.sub("", text[begun : found.start()])), label
                label = None
            case _:
                pass


def _begun(given: Attributes, known: dict[str, _List]) -> _List:
    """A list of the outermost level, which may go on with another."""
    name = given.get("text:style-name", "")
    before = known.get(given["text:continue-list"]) if "text:continue-list" in given else None
    if before is None and given.get("text:continue-numbering") == "true":
        before = known.get(name)
    one = _List(name=name or (before.name if before else ""), counts=before.counts if before else {})
    known.update({one.name: one, given.get("xml:id", one.name): one})
    return one


def _counted(one: _List, level: int, given: Attributes, styles: Mapping[str, Style]) -> str:
    style = styles.get(one.name, {})
    asked = style.get(str(level), {})
    start = _whole(given.get("text:start-value", ""), _whole(asked.get("text:start-value", ""), 1))
    is_anew = level not in one.counts or "text:start-value" in given
    one.counts[level] = start if is_anew else one.counts[level] + 1
    for deeper in [place for place in one.counts if place > level]:
        del one.counts[deeper]
    shown = min(level, max(1, _whole(asked.get("text:display-levels", ""), 1)))
    levels = range(level - shown + 1, level + 1)
    numbers = [_number(one.counts.get(place, 1), style.get(str(place), {})) for place in levels]
    if not all(numbers):
        return ""
    return f"{asked.get('style:num-prefix', '')}{'.'.join(numbers)}{asked.get('style:num-suffix', '')}".strip()


def _number(number: int, asked: Attributes) -> str:
    way = asked.get("style:num-format", "")
    return counted(number, _WAYS.get(way) or _WAYS_OF_EAST.get(way, ""))


def _styles(text: str) -> Mapping[str, Style]:
    """The levels that count, of each kind of list."""
    styles: dict[str, Style] = {}
    for found in _STYLE.finditer(text):
        levels = [_attributes(level) for level in _LEVEL.findall(found[2])]
        styles[_attributes(found[1]).get("style:name", "")] = {level.get("text:level", ""): level for level in levels}
    return styles


def _attributes(tag: str) -> Attributes:
    return {name: unescape(value) for name, value in _ATTRIBUTE.findall(tag)}


def _whole(text: str, otherwise: int) -> int:
    return int(text) if text.isdecimal() and len(text) <= _LONGEST else otherwise
