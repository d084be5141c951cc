"""Spreadsheets: each sheet under its name, its cells as a table. Works no formula out: its value is there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from itertools import chain, pairwise

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import member
from recto.files.parsing.formats.extraction import extract
from recto.files.parsing.formats.sheets import ods
from recto.files.parsing.formats.sheets.old_books import NOTHING_SHOWN, ShownCells, shown_cells
from recto.files.parsing.formats.sheets.workbook import Cells, Sheet, SheetLine, Workbook, open_workbook
from recto.files.parsing.formats.tables import TableRow, table_elements, trimmed
from recto.files.parsing.formats.xberg_nodes import note
from recto.files.parsing.ports import FoundElements, Frame, Opened

NOT_READ = "[this sheet could not be read: the file is damaged here]"
# More empty rows or columns than these in turn say nothing.
MOST_EMPTY = 20
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
    book = open_workbook(data) if form == "xlsx" else None
    if book is not None and book.sheets:
        named = [(sheet.name, sheet.is_hidden, _of_workbook(book, sheet)) for sheet in book.sheets]
    else:
        named = list(_of_tables(data, form))
    yield Opened(unit="sheet", page_count=len(named))
    for number, (name, is_hidden, elements) in enumerate(named, 1):
        mark = f"[sheet {number}: {name}{' (hidden)' if is_hidden else ''}]"
        for element in chain((Element(kind="page", text=mark),), elements):
            yield FoundElements(elements=(replace(element, page=number),), pages=number - 1)
        yield FoundElements(pages=number)


def _of_workbook(book: Workbook, sheet: Sheet) -> Iterator[Element]:
    lines = book.lines(sheet)
    if lines is None:
        yield Element(kind="note", text=NOT_READ)
        return
    yield from sheet_elements(list(lines))
    for place, words in book.comments(sheet):
        yield from note(f"[comment on {place}] ", words, None)


def _of_tables(data: bytes, form: str) -> Iterator[tuple[str, bool, Iterator[Element]]]:
    """Sheets as xberg finds them."""
    found = extract(ods.ready(data) if form == "ods" else data, form, "tables")
    names = {page.page_number: page.sheet_name or "" for page in found.pages or []}
    tables: defaultdict[int, list[list[TableRow]]] = defaultdict(list)
    cells = shown_cells(data) if form == "xls" else []
    for table in found.tables:
        # Sheets that are nothing but charts are counted by one of them only.
        known = cells[table.page_number - 1] if len(cells) == len(names) else NOTHING_SHOWN
        tables[table.page_number].append(trimmed(_as_shown(table.cells, known)))
    is_hidden = HIDDEN[form](data)
    charts = ods.charts(data) if form == "ods" else None
    for number in sorted({*names, *tables}):
        name = names.get(number, "")
        elements = chain.from_iterable(sheet_elements(_lines(rows)) for rows in tables[number])
        yield name, is_hidden(name), chain(elements, charts(name) if charts else ())


def _as_shown(rows: Sequence[Sequence[str]], known: ShownCells) -> list[list[str]]:
    return [[known.get((number, column), cell) for column, cell in enumerate(row)] for number, row in enumerate(rows)]


def _lines(rows: Sequence[TableRow]) -> list[SheetLine]:
    filled = ((number, [(column, cell) for column, cell in enumerate(row) if cell]) for number, row in enumerate(rows))
    return [(number, cells) for number, cells in filled if cells]


def sheet_elements(lines: Sequence[SheetLine]) -> Iterator[Element]:
    """The cells of a sheet as tables. Where many rows or columns in turn are empty they are left out, which is said."""
    columns = list(_runs(sorted({column for _, cells in lines for column, _ in cells})))
    if left_out := sum(after[0] - before[-1] - 1 for before, after in pairwise(columns)):
        yield Element(kind="note", text=f"[{left_out:,} empty columns left out]")
    kept = [column for run in columns for column in range(run[0], run[-1] + 1)]
    places = {column: place for place, column in enumerate(kept)}
    by_number: defaultdict[int, Cells] = defaultdict(list)
    for number, cells in lines:
        by_number[number] += cells
    end = None
    for run in _runs(sorted(by_number)):
        if end is not None:
            yield Element(kind="note", text=f"[{run[0] - end - 1:,} empty rows left out]")
        end = run[-1]
        yield from table_elements(_row(by_number.get(number, []), places) for number in range(run[0], end + 1))


def _runs(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Numbers that rise, without long gaps between them."""
    run: list[int] = []
    for number in numbers:
        if run and number - run[-1] > MOST_EMPTY + 1:
            yield run
            run = []
        run.append(number)
    if run:
        yield run


def _row(cells: Cells, places: Mapping[int, int]) -> TableRow:
    row = [""] * len(places)
    for column, text in cells:
        row[places[column]] = text
    return tuple(row)


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
