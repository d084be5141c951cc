"""The parser of each format. Runs in the child; it is given bytes, and neither opens files nor connects to anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from recto.conversation.document import Element
from recto.files.encoding.decode import UNREADABLE, declared_encoding, decode, decode_long
from recto.files.parsing.formats.archive import is_locked, is_sealed
from recto.files.parsing.formats.letters import flowing
from recto.files.parsing.formats.pdf.pdf_document import pdf
from recto.files.parsing.formats.sheets.spreadsheet import sheets
from recto.files.parsing.formats.slides.presentation import slides
from recto.files.parsing.formats.text.delimited import delimited
from recto.files.parsing.formats.text.mail import mail
from recto.files.parsing.formats.text.plain import pieces
from recto.files.parsing.formats.text.web import html
from recto.files.parsing.ports import DocumentEnd, FoundElements, Frame, Opened, Task
from recto.files.parsing.refusal import DAMAGED, ENCRYPTED, NOT_TEXT, UnreadableDocument
from recto.files.types.signatures import OLE, PDF, RTF, ZIP, look

# What no text has: databases refuse the one, and the others are halves of characters.
_REFUSED = re.compile("[\0\ud800-\udfff]")
# A comment is never looked at twice: pages made of them would take forever.
_MARKUP = re.compile(
    r"\s*+(?>(?><!--.*?-->)\s*+)*+<(?:!doctype html|html|head|body|table|div|meta|\?xml)\b", re.IGNORECASE | re.DOTALL
)

_FLOWING = ("docx", "doc", "odt", "rtf", "epub")
_SHEETS = ("xlsx", "xls", "ods")
_SLIDES = ("pptx", "ppt", "odp", "odg")
_TABLES = ("csv", "tsv")
_HTML = ("html", "htm")
# What the bytes of a format must be.
_NEW = {"doc": "docx", "xls": "xlsx", "ppt": "pptx"}
_OLD = {new: old for old, new in _NEW.items()}
_ZIPS = (*_OLD, "odt", "ods", "odp", "odg", "epub")
_OLES = (*_NEW, "msg")


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
    form = _form_of(data, task.format.lower().removeprefix("."))
    if form == "pdf":
        return pdf(data, task)
    if form in _FLOWING:
        return flowing(data, form)
    if form in _SHEETS:
        return sheets(data, form)
    if form in _SLIDES:
        return slides(data, form)
    if form in ("eml", "msg"):
        return mail(data, form, lambda attached, ending: _frames(attached, replace(task, format=ending)))
    return _text_frames(data, form)


def _form_of(data: bytes, form: str) -> str:
    """What the bytes really are, where that may differ from the name. Raises Unreadable where it must not."""
    seen = look(data[:4_096])
    if form == "pdf" or (seen == PDF and form not in _ZIPS + _OLES):
        return "pdf"
    if seen == OLE and form in _ZIPS + _OLES:
        return _in_ole(data, form)
    if seen == ZIP and form in _ZIPS + tuple(_NEW):
        if is_sealed(data):
            raise UnreadableDocument(ENCRYPTED)
        return _NEW.get(form, form)
    if form == "rtf" or (seen == RTF and form in ("doc", "")):
        if seen != RTF:
            raise UnreadableDocument(DAMAGED)
        return "rtf"
    if form in ("doc", "xls") and seen is None:
        return _in_text(data, form)
    if form in _ZIPS + _OLES:
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


def _text_frames(data: bytes, form: str) -> Iterator[Frame]:
    declared = declared_encoding(data) if form in (*_HTML, "xml") else ""
    is_plain = form not in (*_HTML, *_TABLES) and declared in ("", "utf-8")
    if is_plain and (parts := decode_long(data)) is not None:
        return _opened(pieces(parts))
    text = decode(data, declared)
    if text is None:
        raise UnreadableDocument(NOT_TEXT)
    if form in _HTML:
        return html(text)
    return _opened(delimited(text, form) if form in _TABLES else pieces([text]))


def _opened(elements: Iterable[Element]) -> Iterator[Frame]:
    yield Opened()
    for element in elements:
        yield FoundElements(elements=(element,))


def _clean(element: Element) -> Element:
    if not _REFUSED.search(element.text):
        return element
    rows = tuple([tuple([_REFUSED.sub(UNREADABLE, cell) for cell in row]) for row in element.rows])
    return replace(element, text=_REFUSED.sub(UNREADABLE, element.text), rows=rows)
