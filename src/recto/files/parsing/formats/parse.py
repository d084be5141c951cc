"""The parser of each format. Runs in the child; it is given bytes, and neither opens files nor connects to anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from recto.conversation.document import Element
from recto.conversation.file_formats import FORMATS, ParserName, format_by_ending
from recto.files.decode import UNREADABLE, declared_encoding, decode, decode_long
from recto.files.file_type import OLE, PDF, RTF, ZIP, look
from recto.files.parsing.formats.archive import is_locked, is_sealed
from recto.files.parsing.formats.mail import mail
from recto.files.parsing.formats.markdown import notebook
from recto.files.parsing.formats.office.letters import flowing
from recto.files.parsing.formats.office.presentation import slides
from recto.files.parsing.formats.office.spreadsheet import sheets
from recto.files.parsing.formats.pdf.pdf_document import pdf
from recto.files.parsing.formats.plain_text import delimited, pieces
from recto.files.parsing.formats.web import html
from recto.files.parsing.ports import (
    DAMAGED,
    ENCRYPTED,
    NOT_TEXT,
    DocumentEnd,
    FoundElements,
    Frame,
    Opened,
    Task,
    UnreadableDocument,
)

# What no text has: databases refuse the one, and the others are halves of characters.
_REFUSED = re.compile("[\0\ud800-\udfff]")
# A comment is never looked at twice: pages made of them would take forever.
_MARKUP = re.compile(
    r"\s*+(?>(?><!--.*?-->)\s*+)*+<(?:!doctype html|html|head|body|table|div|meta|\?xml)\b", re.IGNORECASE | re.DOTALL
)

# Old formats of Office, and the new ones that programs write under their names too.
_NEW = {"doc": "docx", "xls": "xlsx", "ppt": "pptx"}
_OLD = {new: old for old, new in _NEW.items()}
_ZIPS = frozenset(row.ending for row in FORMATS if row.containers[0] == "zip")
_OLES = frozenset(row.ending for row in FORMATS if row.containers[0] == "ole")
_OFTEN_TEXT = frozenset(row.ending for row in FORMATS if "text" in row.containers[1:])

Parser: TypeAlias = Callable[[bytes, str, Task], Iterator[Frame]]


def parse(data: bytes, task: Task) -> Iterator[Frame]:
    """What a document holds, in order, as it is found."""
    try:
        for frame in _frames(data, task):
            yield (
                replace(frame, elements=tuple(map(_clean, frame.elements)))
                if isinstance(frame, FoundElements)
                else frame
            )
    except UnreadableDocument as error:
        yield error.failed
        return
    yield DocumentEnd()


def _frames(data: bytes, task: Task) -> Iterator[Frame]:
    ending = task.format.lower().removeprefix(".")
    named = format_by_ending(ending)
    form = _form_of(data, named.ending if named else ending)
    known = format_by_ending(form)
    return _PARSERS[(known and known.parser) or "text"](data, form, task)


def _form_of(data: bytes, form: str) -> str:
    """What the bytes really are, where that may differ from the name. Raises Unreadable where it must not."""
    seen = look(data[:4_096])
    if form == "pdf" or (seen == PDF and form not in _ZIPS | _OLES):
        return "pdf"
    if seen == OLE and form in _ZIPS | _OLES:
        return _in_ole(data, form)
    if seen == ZIP and form in _ZIPS | _NEW.keys():
        if is_sealed(data):
            raise UnreadableDocument(ENCRYPTED)
        return _NEW.get(form, form)
    if form == "rtf" or (seen == RTF and form in ("doc", "")):
        if seen != RTF:
            raise UnreadableDocument(DAMAGED)
        return "rtf"
    if form in _OFTEN_TEXT and seen is None:
        return _in_text(data, form)
    if form in _ZIPS | _OLES:
        raise UnreadableDocument(DAMAGED)
    return form


def _in_ole(data: bytes, form: str) -> str:
    old = _OLD.get(form, form)
    if is_locked(data, old):
        raise UnreadableDocument(ENCRYPTED)
    if old not in _OLES:
        raise UnreadableDocument(DAMAGED)
    return old


def _in_text(data: bytes, form: str) -> str:
    """Many programs write a page of HTML, or plain text, under the names of old formats."""
    text = decode(data[:65_536])
    if text is None:
        raise UnreadableDocument(DAMAGED)
    if _MARKUP.match(text):
        return "html"
    return "csv" if form == "xls" else "txt"


def _mail(data: bytes, form: str, task: Task) -> Iterator[Frame]:
    return mail(data, form, lambda attached, ending: _frames(attached, replace(task, format=ending)))


def _text(data: bytes, form: str) -> Iterator[Frame]:
    declared = declared_encoding(data) if form == "xml" else ""
    parts = decode_long(data) if declared in ("", "utf-8") else None
    return _opened(pieces([_decoded(data, declared)] if parts is None else parts))


def _decoded(data: bytes, declared: str = "") -> str:
    text = decode(data, declared)
    if text is None:
        raise UnreadableDocument(NOT_TEXT)
    return text


def _opened(elements: Iterable[Element]) -> Iterator[Frame]:
    yield Opened()
    for element in elements:
        yield FoundElements(elements=(element,))


def _clean(element: Element) -> Element:
    if not _REFUSED.search(element.text):
        return element
    rows = tuple([tuple([_REFUSED.sub(UNREADABLE, cell) for cell in row]) for row in element.rows])
    return replace(element, text=_REFUSED.sub(UNREADABLE, element.text), rows=rows)


# By the names that rows of `FORMATS` have for them.
_PARSERS: Mapping[ParserName, Parser] = {
    "pdf": lambda data, _, task: pdf(data, task),
    "flowing": lambda data, form, _: flowing(data, form),
    "sheets": lambda data, form, _: sheets(data, form),
    "slides": lambda data, form, _: slides(data, form),
    "mail": _mail,
    "table": lambda data, form, _: _opened(delimited(_decoded(data), form)),
    "notebook": lambda data, _form, _task: _opened(notebook(_decoded(data))),
    "html": lambda data, _form, _task: html(_decoded(data, declared_encoding(data))),
    "text": lambda data, form, _: _text(data, form),
}
