"""An odt made ready for xberg, which drops charts and covered cells and takes remarks for notes. Keeps all words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from recto.files.parsing.archive import Archive
from recto.files.parsing.odf import chart
from recto.page.document import Element

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


def ready(data: bytes) -> bytes:
    """The document as xberg reads it whole; as it is where it needs nothing or is too large."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    charted = "".join(_charted(text, archive)) if "<draw:object" in text else text
    changed = "".join(_unboxed(_REMARK.sub(_remark, _COVERED.sub(_empty, charted))))
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


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
