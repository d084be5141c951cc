"""Documents without pages that count: letters, books, pages of the web, mail. Structure as far as the format has it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from recto.files.parsing.extraction import extract
from recto.files.parsing.markdown import blocks
from recto.files.parsing.nodes import elements_of
from recto.files.parsing.ports import Found, Frame, Opened
from recto.files.parsing.refusal import DAMAGED, Unreadable
from recto.page.document import Element

FRAME_ELEMENTS = 100
_HEAD_BYTES = 4_096
# The first line of a message, after that of the mailbox it was in.
_HEADER = re.compile(rb"(?:From [^\n]*\n)?[\w-]+[ \t]*:")
# How Outlook names all that is in a message.
_OUTLOOK = "__substg1.0_".encode("utf-16-le")
# Notes at the foot of a page would be lost; as part of their paragraph they are not.
_RTF_NOTE = re.compile(rb"\{\\(?:\*\\)?footnote(?![a-z])")
_DECLARED = re.compile(r"<meta\b[^>]*charset[^>]*>", re.IGNORECASE)
_ROW_END, _CELL_END = "\t\t", "\t"


def flowing(data: bytes, form: str) -> Iterator[Frame]:
    """The elements of a text document, in their order. Raises Unreadable."""
    if form == "epub":
        # Its nodes do not say which item is within which.
        return _told(blocks(extract(data, form, "markdown").content))
    found = extract(_RTF_NOTE.sub(b"{ ", data) if form == "rtf" else data, form)
    nodes = found.document.nodes if found.document else []
    elements = elements_of(nodes) if nodes or not found.content.strip() else blocks(found.content)
    return _told(map(_separated, elements) if form == "doc" else elements)


def html(text: str) -> Iterator[Frame]:
    """A page of the web. Raises Unreadable."""
    # It is no longer written as it says.
    found = extract(_DECLARED.sub("", text).encode(), "html", "markdown")
    return _told(blocks(found.content))


def mail(data: bytes, form: str) -> Iterator[Frame]:
    """A message: who, to whom, when, about what; its words; the names of what is attached. Raises Unreadable."""
    head = data[:_HEAD_BYTES].removeprefix(codecs.BOM_UTF8).lstrip()
    if (_OUTLOOK not in data) if form == "msg" else (b"\0" in head or not _HEADER.match(head)):
        raise Unreadable(DAMAGED)
    found = extract(data, form)
    return _told(elements_of(found.document.nodes if found.document else []))


def _told(elements: Iterable[Element]) -> Iterator[Frame]:
    yield Opened()
    waiting: list[Element] = []
    for element in elements:
        waiting.append(replace(element, page=None))
        if len(waiting) == FRAME_ELEMENTS:
            yield Found(elements=tuple(waiting))
            waiting = []
    if waiting:
        yield Found(elements=tuple(waiting))


def _separated(element: Element) -> Element:
    """Cells of a table that its format has lost, set apart again."""
    if _CELL_END not in element.text:
        return element
    return replace(element, text=element.text.replace(_ROW_END, "\n").replace(_CELL_END, " | "))
