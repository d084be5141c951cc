"""Spreadsheets: each sheet under its name, its cells as a table. Works no formula out: its value is there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from html import unescape

from recto.files.parsing.archive import member
from recto.files.parsing.extraction import extract
from recto.files.parsing.ports import Found, Frame, Opened
from recto.files.parsing.tables import Row, table_elements, trimmed
from recto.page.document import Element

_XLSX_SHEET = re.compile(r"<(?:\w+:)?sheet\b[^>]*>")
_ODS_STYLE = re.compile(
    r'<style:style style:name="([^"]*)" style:family="table"[^>]*>.{0,500}?</style:style>', re.DOTALL
)
_ODS_TABLE = re.compile(r"<table:table\s[^>]*>")
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
# A record of an old workbook: where the sheet begins, whether it is seen, what it is; then its name.
_XLS_HIDDEN = rb"\x85\0..(?:....)[\1\2]\0"


def sheets(data: bytes, form: str) -> Iterator[Frame]:
    """The sheets in their order. Raises Unreadable."""
    found = extract(data, form, "tables")
    names = {page.page_number: page.sheet_name or "" for page in found.pages or []}
    tables: defaultdict[int, list[list[Row]]] = defaultdict(list)
    for table in found.tables:
        tables[table.page_number].append(trimmed(table.cells))
    numbers = sorted({*names, *tables})
    is_hidden = HIDDEN[form](data)
    yield Opened(unit="sheet", page_count=len(numbers))
    for done, number in enumerate(numbers, 1):
        name = names.get(number, "")
        hidden = " (hidden)" if is_hidden(name) else ""
        yield Found(elements=(Element(kind="page", text=f"[sheet {done}: {name}{hidden}]", page=done),), pages=done - 1)
        for rows in tables[number]:
            yield from (Found(elements=(element,), pages=done - 1) for element in table_elements(rows, done))
        yield Found(pages=done)


def _xlsx(data: bytes) -> Callable[[str], bool]:
    sheets = map(_attributes, _XLSX_SHEET.findall(member(data, "xl/workbook.xml")))
    return {sheet.get("name", "") for sheet in sheets if "idden" in sheet.get("state", "")}.__contains__


def _ods(data: bytes) -> Callable[[str], bool]:
    text = member(data, "content.xml")
    styles = {found[1] for found in _ODS_STYLE.finditer(text) if 'table:display="false"' in found[0]}
    tables = map(_attributes, _ODS_TABLE.findall(text))
    return {one.get("table:name", "") for one in tables if one.get("table:style-name") in styles}.__contains__


def _xls(data: bytes) -> Callable[[str], bool]:
    def is_hidden(name: str) -> bool:
        wide = b"\1" + name.encode("utf-16-le")
        narrow = b"\0" + name.encode("latin-1", "replace")
        record = b"(?:" + re.escape(wide) + b"|" + re.escape(narrow) + b")"
        length = re.escape(bytes([min(255, len(name))]))
        return bool(name) and re.search(_XLS_HIDDEN + length + record, data, re.DOTALL) is not None

    return is_hidden


def _attributes(tag: str) -> Mapping[str, str]:
    return {name: unescape(value) for name, value in _ATTRIBUTE.findall(tag)}


HIDDEN: Mapping[str, Callable[[bytes], Callable[[str], bool]]] = {"xlsx": _xlsx, "ods": _ods, "xls": _xls}
