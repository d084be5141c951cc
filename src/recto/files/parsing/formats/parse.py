"""The parser of each format. Parsers run in a parser process; they open no files and no connections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from recto.conversation.file_formats import FORMATS, ParserName, format_by_ending
from recto.files.decode import decode, find_declared_encoding
from recto.files.file_type import OLE, PDF, RTF, ZIP, find_signature
from recto.files.parsing.formats.archive import is_locked, is_sealed
from recto.files.parsing.formats.mail import parse_mail
from recto.files.parsing.formats.markdown import parse_notebook
from recto.files.parsing.formats.office.letters import parse_letter
from recto.files.parsing.formats.office.presentation import parse_slides
from recto.files.parsing.formats.office.spreadsheet import parse_sheets
from recto.files.parsing.formats.pdf.pdf_document import parse_pdf
from recto.files.parsing.formats.plain_text import clean, decode_text, element_frames, plain_frames
from recto.files.parsing.formats.web import parse_html
from recto.files.parsing.ports import DAMAGED, ENCRYPTED, DocumentEnd, Frame, Task, UnreadableDocument

# Atomic groups prevent backtracking, which would take forever on pages that consist of comments.
_MARKUP = re.compile(
    r"\s*+(?>(?><!--.*?-->)\s*+)*+<(?:!doctype html|html|head|body|table|div|meta|\?xml)\b", re.IGNORECASE | re.DOTALL
)

# New Office formats by old ones. Programs also write the new formats under old extensions.
_NEW = {"doc": "docx", "xls": "xlsx", "ppt": "pptx"}
_OLD = {new: old for old, new in _NEW.items()}
_ZIPS = frozenset(row.ending for row in FORMATS if row.containers[0] == "zip")
_OLES = frozenset(row.ending for row in FORMATS if row.containers[0] == "ole")
_OFTEN_TEXT = frozenset(row.ending for row in FORMATS if "text" in row.containers[1:])

Parser: TypeAlias = Callable[[bytes, str, Task], Iterator[Frame]]


def parse(data: bytes, task: Task) -> Iterator[Frame]:
    """Yield the content of a document in order."""
    try:
        yield from map(clean, _frames(data, task))
    except UnreadableDocument as error:
        yield error.failed
        return
    yield DocumentEnd()


def _frames(data: bytes, task: Task) -> Iterator[Frame]:
    ending = task.format.lower().removeprefix(".")
    named_format = format_by_ending(ending)
    form = _form_of(data, named_format.ending if named_format else ending)
    format = format_by_ending(form)
    return _PARSERS[(format and format.parser) or "text"](data, form, task)


def _form_of(data: bytes, form: str) -> str:
    """Return the real format of the bytes, if it may differ from the name. Raise UnreadableDocument for a mismatch."""
    signature = find_signature(data[:4_096])
    if form == "pdf" or (signature == PDF and form not in _ZIPS | _OLES):
        return "pdf"
    if signature == OLE and form in _ZIPS | _OLES:
        old = _OLD.get(form, form)
        if is_locked(data, old):
            raise UnreadableDocument(ENCRYPTED)
        if old not in _OLES:
            raise UnreadableDocument(DAMAGED)
        return old
    if signature == ZIP and form in _ZIPS | _NEW.keys():
        if is_sealed(data):
            raise UnreadableDocument(ENCRYPTED)
        return _NEW.get(form, form)
    if form == "rtf" or (signature == RTF and form in ("doc", "")):
        if signature != RTF:
            raise UnreadableDocument(DAMAGED)
        return "rtf"
    if form in _OFTEN_TEXT and signature is None:
        # Detect HTML, tables and plain text, which many programs write under the names of old formats
        text = decode(data[:65_536])
        if text is None:
            raise UnreadableDocument(DAMAGED)
        if _MARKUP.match(text):
            return "html"
        return "csv" if form == "xls" else "txt"
    if form in _ZIPS | _OLES:
        raise UnreadableDocument(DAMAGED)
    return form


# Parsers by their name in `FORMATS`.
_PARSERS: Mapping[ParserName, Parser] = {
    "pdf": lambda data, _, task: parse_pdf(data, task),
    "flowing": lambda data, form, _: parse_letter(data, form),
    "sheets": lambda data, form, _: parse_sheets(data, form),
    "slides": lambda data, form, _: parse_slides(data, form),
    "mail": lambda data, form, task: parse_mail(
        data, form, lambda attachment, ending: _frames(attachment, replace(task, format=ending))
    ),
    "table": lambda data, form, _: plain_frames(data, form),
    "notebook": lambda data, _form, _task: element_frames(parse_notebook(decode_text(data))),
    "html": lambda data, _form, _task: parse_html(decode_text(data, find_declared_encoding(data))),
    "text": lambda data, form, _: plain_frames(data, form),
}
