"""An odt made ready for xberg, which drops cells that others cover and takes remarks for notes. Keeps all words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recto.files.parsing.archive import Archive

_CONTENT = "content.xml"
_COVERED = re.compile(r"<table:covered-table-cell\b([^>]*?)(?:/>|>.*?</table:covered-table-cell>)", re.DOTALL)
_TIMES = re.compile(r'table:number-columns-repeated="(\d{1,3})"')
_REMARK = re.compile(r"<office:annotation\b[^>]*?(?:/>|>(.*?)</office:annotation>)", re.DOTALL)
_PARAGRAPH = re.compile(r"<text:(p|h)\b[^>]*>(.*?)</text:\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_BOX_OR_PARAGRAPH = re.compile(r"<(/?)(draw:text-box|text:[ph])(?:\s[^>]*)?(?<!/)>")
_BOX = "draw:text-box"


def ready(data: bytes) -> bytes:
    """The document as xberg reads it whole; as it is where it needs nothing or is too large."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    changed = "".join(_unboxed(_REMARK.sub(_remark, _COVERED.sub(_empty, text))))
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


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
