"""Spreadsheets: each sheet with its name and its cells as tables. Formulas have the values stored in the file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from html import unescape
from itertools import chain, pairwise
from typing import TypeAlias

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import RELATION, Archive, read_member, read_targets, read_xml
from recto.files.parsing.formats.office.number_formats import Shape, format_value, shape_of
from recto.files.parsing.formats.office.old_office import NOTHING_SHOWN, shown_cells
from recto.files.parsing.formats.office.opendocument import prepare_ods, sheet_charts
from recto.files.parsing.formats.tables import TableRow, table_elements, trim_rows
from recto.files.parsing.formats.xberg_document import extract, link, note
from recto.files.parsing.ports import DocumentStart, FoundElements, Frame

NOT_READ = "[this sheet could not be read: the file is damaged here]"
# Longest run of empty rows or columns to keep.
MOST_EMPTY = 20
_XLSX_SHEET = re.compile(r"<(?:\w+:)?sheet\b[^>]*>")
_ODS_STYLE = re.compile(
    r'<style:style style:name="([^"]*)" style:family="table"[^>]*>.{0,500}?</style:style>', re.DOTALL
)
_ODS_TABLE = re.compile(r"<table:table\s[^>]*>")
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
# A sheet record of an xls: start of the sheet, visibility, kind; its name follows.
_XLS_HIDDEN = rb"\x85\0..(?:....)[\1\2]\0"


def parse_sheets(data: bytes, form: str) -> Iterator[Frame]:
    """Yield the sheets in order. Raise UnreadableDocument."""
    book = open_workbook(data) if form == "xlsx" else None
    if book is not None and book.sheets:
        parsed_sheets = [(sheet.name, sheet.is_hidden, book.elements(sheet)) for sheet in book.sheets]
    else:
        parsed_sheets = list(_of_tables(data, form))
    yield DocumentStart(unit="sheet", page_count=len(parsed_sheets))
    for number, (name, is_hidden, elements) in enumerate(parsed_sheets, 1):
        mark = f"[sheet {number}: {name}{' (hidden)' if is_hidden else ''}]"
        for element in chain((Element(kind="page", text=mark),), elements):
            yield FoundElements(elements=(replace(element, page=number),), pages=number - 1)
        yield FoundElements(pages=number)


def _of_tables(data: bytes, form: str) -> Iterator[tuple[str, bool, Iterator[Element]]]:
    """Yield sheets from xberg."""
    result = extract(prepare_ods(data) if form == "ods" else data, form, "tables")
    names = {page.page_number: page.sheet_name or "" for page in result.pages or []}
    tables: defaultdict[int, list[list[TableRow]]] = defaultdict(list)
    cells = shown_cells(data) if form == "xls" else []
    for table in result.tables:
        # Replace no text if xberg and `shown_cells` find different numbers of sheets: they count chart sheets
        # differently.
        shown_texts = cells[table.page_number - 1] if len(cells) == len(names) else NOTHING_SHOWN
        rows = enumerate(table.cells)
        texts = ([shown_texts.get((at, column), cell) for column, cell in enumerate(row)] for at, row in rows)
        tables[table.page_number].append(trim_rows(texts))
    is_hidden = HIDDEN[form](data)
    charts = sheet_charts(data) if form == "ods" else None
    for number in sorted({*names, *tables}):
        name = names.get(number, "")
        elements = chain.from_iterable(sheet_elements(_lines(rows)) for rows in tables[number])
        yield name, is_hidden(name), chain(elements, charts(name) if charts else ())


def _lines(rows: Sequence[TableRow]) -> list[SheetLine]:
    numbered_rows = (
        (number, [(column, cell) for column, cell in enumerate(row) if cell]) for number, row in enumerate(rows)
    )
    return [(number, cells) for number, cells in numbered_rows if cells]


def sheet_elements(lines: Sequence[SheetLine]) -> Iterator[Element]:
    """Yield the cells of a sheet as tables. Notes replace long runs of empty rows or columns."""
    columns = list(_runs(sorted({column for _, cells in lines for column, _ in cells})))
    if left_out := sum(after[0] - before[-1] - 1 for before, after in pairwise(columns)):
        yield Element(kind="note", text=f"[{left_out:,} empty columns left out]")
    kept_columns = [column for run in columns for column in range(run[0], run[-1] + 1)]
    places = {column: place for place, column in enumerate(kept_columns)}
    by_number: defaultdict[int, Cells] = defaultdict(list)
    for number, cells in lines:
        by_number[number] += cells
    end = None
    for run in _runs(sorted(by_number)):
        if end is not None:
            yield Element(kind="note", text=f"[{run[0] - end - 1:,} empty rows left out]")
        end = run[-1]
        # Create the rows one at a time, because all rows of a sparse sheet would fill the memory.
        yield from table_elements(_row(by_number.get(number, []), places) for number in range(run[0], end + 1))


def _runs(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Group rising numbers without long gaps."""
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
    sheets = map(_attributes, _XLSX_SHEET.findall(read_member(data, "xl/workbook.xml")))
    return {sheet.get("name", "") for sheet in sheets if "idden" in sheet.get("state", "")}.__contains__


def _ods(data: bytes) -> Callable[[str], bool]:
    text = read_member(data, "content.xml")
    styles = {match[1] for match in _ODS_STYLE.finditer(text) if 'table:display="false"' in match[0]}
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


# The cells of a row: column and text, in order. A line is the number of a row, and its cells.
Cells: TypeAlias = list[tuple[int, str]]
SheetLine: TypeAlias = tuple[int, Cells]

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_WORKBOOK = "xl/workbook.xml"
_X = r"(?:\w+:)?"
_ROW_OR_CELL = re.compile(rf"<{_X}(?:row\b([^>]*)|c\b([^>]*?)(?:/>|>(.*?)</{_X}c>))", re.DOTALL)
_CELL_ATTRIBUTE = re.compile(r'\b([rst])="([^"]*)"')
_VALUE = re.compile(rf"<{_X}v\b[^>]*>([^<]*)<")
_FORMULA = re.compile(rf"<{_X}f\b[^>]*>([^<]*)<")
_STRING = re.compile(rf"<{_X}si\b[^>]*?(?:/>|>(.*?)</{_X}si>)", re.DOTALL)
_WORDS = re.compile(rf"<{_X}t\b[^>]*>([^<]*)<")
# Phonetic text, and escaped characters that XML cannot contain.
_PHONETIC = re.compile(rf"<{_X}rPh\b.*?</{_X}rPh>", re.DOTALL)
_CODED = re.compile("_x([0-9A-Fa-f]{4})_")
_HYPERLINK = re.compile(r'HYPERLINK\("([^"]*)"')
_LONGEST = 9
# Most columns of a sheet.
_COLUMNS = 16_384
_DIGITS = "0123456789"
_COLUMN = re.compile("[A-Z]{1,3}")


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A sheet of a workbook: its name and the part of the package that contains it."""

    name: str
    part: str
    is_hidden: bool


@dataclass(frozen=True, kw_only=True)
class Workbook:
    """A workbook: sheets, shared strings, and how each style shows a number."""

    archive: Archive
    sheets: tuple[Sheet, ...]
    strings: Sequence[str]
    shapes: Sequence[Shape]
    from_1904: bool

    def elements(self, sheet: Sheet) -> Iterator[Element]:
        """Yield the cells and the comments of a sheet."""
        text = self.archive.text(sheet.part)
        if not text:
            yield Element(kind="note", text=NOT_READ)
            return
        targets = read_targets(self.archive, sheet.part)
        tags = re.findall(rf"<{_X}hyperlink\b[^>]*>", text) if "hyperlink" in text else []
        attributes = [dict(re.findall(r'([\w:]+)="([^"]*)"', tag)) for tag in tags]
        links = {one.get("ref", "").partition(":")[0]: targets.get(one.get("r:id", ""), "") for one in attributes}
        yield from sheet_elements(list(self._lines(text, links)))
        names_of_parts = targets.values()
        # Prefer threaded comments, because their old-style copies only refer to them.
        names = [name for name in names_of_parts if "threadedComment" in name] or [
            name for name in names_of_parts if "comments" in name
        ]
        for root in filter(None, (read_xml(self.archive, name) for name in names if "://" not in name)):
            for one in root.iter():
                words = next((child for child in one if child.tag.endswith("}text")), None)
                if words is not None and (place := one.get("ref")):
                    yield from note(f"[comment on {place}] ", "".join(words.itertext()), None)

    def _lines(self, text: str, links: Mapping[str, str]) -> Iterator[SheetLine]:
        row, column, cells = 0, 0, Cells()
        for match in _ROW_OR_CELL.finditer(text):
            if match[2] is None:
                if cells:
                    yield row, cells
                attributes = dict(_CELL_ATTRIBUTE.findall(match[1]))
                row, column, cells = _number(attributes.get("r", ""), row + 1), 0, Cells()
                continue
            if not match[3]:
                column += 1
                continue
            attributes = dict(_CELL_ATTRIBUTE.findall(match[2]))
            place = attributes.get("r", "")
            column = _column(place.rstrip(_DIGITS)) or column + 1
            if words := self._cell(attributes, match[3], links.get(place, "")):
                cells.append((column, words))
        if cells:
            yield row, cells

    def _cell(self, attributes: Mapping[str, str], inner: str, url: str) -> str:
        value = _VALUE.search(inner)
        formula = _FORMULA.search(inner) if "f" in inner else None
        words = self._value(attributes, value[1]) if value else _words(inner)
        if formula and not words:
            words = f"={_text(formula[1])}" if formula[1] else ""
        if formula and not url and (leads := _HYPERLINK.match(_text(formula[1]))):
            url = leads[1]
        return link(words, url) if url else words.strip()

    def _value(self, attributes: Mapping[str, str], value: str) -> str:
        match attributes.get("t", "n"):
            case "s":
                place = _number(value, len(self.strings))
                return self.strings[place] if place < len(self.strings) else ""
            case "b":
                return "true" if value.strip() == "1" else "false"
            case "n":
                place = _number(attributes.get("s", ""), 0)
                shape = self.shapes[place] if place < len(self.shapes) else "plain"
                return format_value(value.strip(), shape, from_1904=self.from_1904)
            case _:
                return _text(value)


def open_workbook(data: bytes) -> Workbook | None:
    """Open the workbook of a zip. Return None if only xberg can read it."""
    archive = Archive(data)
    root = read_xml(archive, _WORKBOOK)
    leads = read_targets(archive, _WORKBOOK)
    if root is None or not leads:
        return None
    sheets = tuple(
        Sheet(
            name=one.get("name", ""),
            part=leads.get(one.get(f"{RELATION}id", ""), ""),
            is_hidden="idden" in one.get("state", ""),
        )
        for one in root.iter(f"{_S}sheet")
    )
    shared = next((name for name in leads.values() if name.endswith("sharedStrings.xml")), "")
    texts = archive.text(shared) if shared else ""
    if (shared and not texts) or any(archive.is_too_large(sheet.part) for sheet in sheets):
        return None
    settings = root.find(f"{_S}workbookPr")
    shapes: list[Shape] = []
    styles = read_xml(archive, next((name for name in leads.values() if name.endswith("styles.xml")), ""))
    if styles is not None:
        codes = {one.get("numFmtId", ""): one.get("formatCode", "") for one in styles.iter(f"{_S}numFmt")}
        numbers = [one.get("numFmtId", "0") for one in next(styles.iterfind(f"{_S}cellXfs"), ())]
        shapes = [shape_of(_number(number, 0), codes.get(number)) for number in numbers]
    return Workbook(
        archive=archive,
        sheets=sheets,
        strings=[_words(match[1] or "") for match in _STRING.finditer(texts)],
        shapes=shapes,
        from_1904=settings is not None and settings.get("date1904", "0") in ("1", "true"),
    )


def _words(inner: str) -> str:
    return "".join([_text(words) for words in _WORDS.findall(_PHONETIC.sub("", inner) if "rPh" in inner else inner)])


def _text(words: str) -> str:
    text = unescape(words) if "&" in words else words
    return _CODED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def _number(text: str, otherwise: int) -> int:
    return int(text) if len(text) <= _LONGEST and text.isdecimal() else otherwise


@lru_cache(_COLUMNS)
def _column(letters: str) -> int:
    """Return the number of a column, from 1; 0 if it is invalid."""
    number = 0
    for letter in letters if _COLUMN.fullmatch(letters) else "":
        number = number * 26 + ord(letter) - 64
    return number
