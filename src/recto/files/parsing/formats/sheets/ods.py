"""An ods made ready for xberg, which takes numbers for what is shown and drops where links lead. Keeps all words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from html import escape, unescape
from itertools import chain

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import Archive
from recto.files.parsing.formats.opendocument.odf import chart
from recto.files.parsing.formats.xberg_nodes import link

_CONTENT = "content.xml"
_CELL = re.compile(r"<table:table-cell\b([^>]*)>(?=<text:p>(?:[^<]*%|#[^<]*|0\d+)</text:p>)")
_VALUE = re.compile(r'\soffice:(?:value-type|value|string-value)="[^"]*"')
_SHEET_OR_OBJECT = re.compile(
    r'<table:table\s[^>]*?\btable:name="([^"]*)"|<draw:object\b[^>]*?\bxlink:href="([^"]*)"', re.DOTALL
)
_LINK = re.compile(r'<text:a\b[^>]*\bxlink:href="([^"]*)"[^>]*>([^<]*)</text:a>')


def ready(data: bytes) -> bytes:
    """The book with parts of a hundred, errors and zeros in front as they are shown; as it is where it is too large."""
    archive = Archive(data)
    text = archive.text(_CONTENT)
    changed = _LINK.sub(_linked, _CELL.sub(_as_shown, text))
    return data if changed == text else archive.with_text(_CONTENT, changed) or data


def charts(data: bytes) -> Callable[[str], Iterator[Element]]:
    """The charts on a sheet by its name, as the tables they were drawn from."""
    archive = Archive(data)
    drawn: defaultdict[str, list[str]] = defaultdict(list)
    name = ""
    for found in _SHEET_OR_OBJECT.finditer(archive.text(_CONTENT)):
        name = unescape(found[1]) if found[1] is not None else name
        drawn[name] += [found[2]] if found[2] else []
    return lambda name: chain.from_iterable(chart(archive, href) for href in drawn.get(name, ()))


def _as_shown(found: re.Match[str]) -> str:
    return f'<table:table-cell office:value-type="string"{_VALUE.sub("", found[1])}>'


def _linked(found: re.Match[str]) -> str:
    return escape(link(unescape(found[2]), unescape(found[1])))
