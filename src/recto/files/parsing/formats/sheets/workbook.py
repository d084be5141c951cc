"""An xlsx from its own XML: what every cell shows, its links, its comments. Makes no cells where there are none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from typing import TypeAlias
from xml.etree import ElementTree

from recto.files.parsing.formats.archive import Archive
from recto.files.parsing.formats.package import RELATION, part, targets
from recto.files.parsing.formats.sheets.number_formats import Shape, shape_of, shown
from recto.files.parsing.formats.xberg_nodes import link

# The columns and texts of a row's cells, in their order; before them the number of the row.
Cells: TypeAlias = list[tuple[int, str]]
SheetLine: TypeAlias = tuple[int, Cells]

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_START = "xl/workbook.xml"
_X = r"(?:\w+:)?"
_ROW_OR_CELL = re.compile(rf"<{_X}(?:row\b([^>]*)|c\b([^>]*?)(?:/>|>(.*?)</{_X}c>))", re.DOTALL)
_ATTRIBUTE = re.compile(r'\b([rst])="([^"]*)"')
_VALUE = re.compile(rf"<{_X}v\b[^>]*>([^<]*)<")
_FORMULA = re.compile(rf"<{_X}f\b[^>]*>([^<]*)<")
_STRING = re.compile(rf"<{_X}si\b[^>]*?(?:/>|>(.*?)</{_X}si>)", re.DOTALL)
_WORDS = re.compile(rf"<{_X}t\b[^>]*>([^<]*)<")
# How what is written is spoken, and characters that XML has not.
_SPOKEN = re.compile(rf"<{_X}rPh\b.*?</{_X}rPh>", re.DOTALL)
_CODED = re.compile("_x([0-9A-Fa-f]{4})_")
_LEADS = re.compile(r'HYPERLINK\("([^"]*)"')
_LONGEST = 9
# As many as a sheet may have.
_COLUMNS = 16_384
_DIGITS = "0123456789"
_COLUMN = re.compile("[A-Z]{1,3}")


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A sheet by its name and its part."""

    name: str
    part: str
    is_hidden: bool


@dataclass(frozen=True, kw_only=True)
class Workbook:
    """A workbook: its sheets in their order, the texts that they share, and how each style shows a number."""

    archive: Archive
    sheets: tuple[Sheet, ...]
    strings: Sequence[str]
    shapes: Sequence[Shape]
    from_1904: bool

    def lines(self, sheet: Sheet) -> Iterator[SheetLine] | None:
        """The rows of a sheet that have anything in them; nothing where it cannot be read."""
        text = self.archive.text(sheet.part)
        return self._lines(text, self._links(sheet, text)) if text else None

    def comments(self, sheet: Sheet) -> Iterator[tuple[str, str]]:
        """What was said about cells, and about which."""
        found = targets(self.archive, sheet.part).values()
        # Where a thread is, the older part only says that there is one.
        names = [name for name in found if "threadedComment" in name] or [name for name in found if "comments" in name]
        for root in filter(None, (part(self.archive, name) for name in names if "://" not in name)):
            for one in root.iter():
                words = next((child for child in one if child.tag.endswith("}text")), None)
                if words is not None and (place := one.get("ref")):
                    yield place, "".join(words.itertext())

    def _links(self, sheet: Sheet, text: str) -> Mapping[str, str]:
        if "<hyperlink" not in text and ":hyperlink" not in text:
            return {}
        leads = targets(self.archive, sheet.part)
        tags = re.findall(rf"<{_X}hyperlink\b[^>]*>", text)
        attributes = [dict(re.findall(r'([\w:]+)="([^"]*)"', tag)) for tag in tags]
        return {one.get("ref", "").partition(":")[0]: leads.get(one.get("r:id", ""), "") for one in attributes}

    def _lines(self, text: str, links: Mapping[str, str]) -> Iterator[SheetLine]:
        row, column, cells = 0, 0, Cells()
        for found in _ROW_OR_CELL.finditer(text):
            if found[2] is None:
                if cells:
                    yield row, cells
                attributes = dict(_ATTRIBUTE.findall(found[1]))
                row, column, cells = _number(attributes.get("r", ""), row + 1), 0, Cells()
                continue
            if not found[3]:
                column += 1
                continue
            attributes = dict(_ATTRIBUTE.findall(found[2]))
            place = attributes.get("r", "")
            column = _column(place.rstrip(_DIGITS)) or column + 1
            if words := self._cell(attributes, found[3], links.get(place, "")):
                cells.append((column, words))
        if cells:
            yield row, cells

    def _cell(self, attributes: Mapping[str, str], inner: str, url: str) -> str:
        value = _VALUE.search(inner)
        formula = _FORMULA.search(inner) if "f" in inner else None
        words = self._value(attributes, value[1]) if value else _words(inner)
        if formula and not words:
            words = f"={_text(formula[1])}" if formula[1] else ""
        if formula and not url and (leads := _LEADS.match(_text(formula[1]))):
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
                return shown(value.strip(), shape, from_1904=self.from_1904)
            case _:
                return _text(value)


def open_workbook(data: bytes) -> Workbook | None:
    """The workbook in a zip, or None where there is none that can be read here."""
    archive = Archive(data)
    root = part(archive, _START)
    leads = targets(archive, _START)
    if root is None or not leads:
        return None
    sheets = tuple(_sheet(one, leads) for one in root.iter(f"{_S}sheet"))
    shared = next((name for name in leads.values() if name.endswith("sharedStrings.xml")), "")
    texts = archive.text(shared) if shared else ""
    if (shared and not texts) or any(archive.is_too_large(sheet.part) for sheet in sheets):
        return None
    settings = root.find(f"{_S}workbookPr")
    return Workbook(
        archive=archive,
        sheets=sheets,
        strings=[_words(found[1] or "") for found in _STRING.finditer(texts)],
        shapes=_shapes(part(archive, next((name for name in leads.values() if name.endswith("styles.xml")), ""))),
        from_1904=settings is not None and settings.get("date1904", "0") in ("1", "true"),
    )


def _sheet(one: ElementTree.Element, leads: Mapping[str, str]) -> Sheet:
    name = leads.get(one.get(f"{RELATION}id", ""), "")
    return Sheet(name=one.get("name", ""), part=name, is_hidden="idden" in one.get("state", ""))


def _shapes(root: ElementTree.Element | None) -> list[Shape]:
    if root is None:
        return []
    codes = {one.get("numFmtId", ""): one.get("formatCode", "") for one in root.iter(f"{_S}numFmt")}
    styles = root.find(f"{_S}cellXfs")
    used = [one.get("numFmtId", "0") for one in styles] if styles is not None else []
    return [shape_of(_number(number, 0), codes.get(number)) for number in used]


def _words(inner: str) -> str:
    return "".join([_text(words) for words in _WORDS.findall(_SPOKEN.sub("", inner) if "rPh" in inner else inner)])


def _text(words: str) -> str:
    text = unescape(words) if "&" in words else words
    return _CODED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _number(text: str, otherwise: int) -> int:
    return int(text) if len(text) <= _LONGEST and text.isdecimal() else otherwise


@lru_cache(_COLUMNS)
def _column(letters: str) -> int:
    """The number of a column, from 1; 0 where there is none."""
    number = 0
    for letter in letters if _COLUMN.fullmatch(letters) else "":
        number = number * 26 + ord(letter) - 64
    return number
