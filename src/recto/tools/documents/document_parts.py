"""Parts of a document: selection, extraction, and the text for the model. No file access.

A part is characters or elements, below a line that gives its position. Never more is read than could be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, TypeAlias

from recto.conversation.document import Element, Extent, Selection, Unit, element_row
from recto.conversation.json import Json, dump
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.page.text.cut import boundary
from recto.tools.documents.read_many import NO_TEXT, failure
from recto.tools.ports import Document

PartFormat: TypeAlias = Literal["text", "elements"]
PAGE_CHARACTERS = 20_000
# About as long as the position line: cutting less would make the text longer.
NEVER_CUT = 150
COUNTED: dict[PartFormat, str] = {"text": "characters", "elements": "elements"}
STILL_READ = " (the rest is still being read)"
# Few long elements fill an answer; of short ones, each step fetches more.
LEAST_AT_ONCE = 4
MOST_AT_ONCE = 64
# The least that an element adds to its text as JSON.
LEAST_JSON = 20
NO_PAGES = "it has no pages to choose from. Leave `pages` out, and go through it with `offset` and `limit`."
NO_PAGE = "there is no {unit} {first}: it has {count}."
NOT_READ = (
    "{unit} {first} was not read: only the first {read} of {count} {unit}s were. "
    "Ask the user for that part as a file of its own."
)
NO_TEXT_HERE = "[there is no text on {place}]"
PAST_END = "offset {offset} is past the end: there are {total} {counted} in {what}."


@dataclass(frozen=True, kw_only=True)
class PageRange:
    """A range of pages, slides or sheets, counted from 1."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, kw_only=True)
class WantedPart:
    """The requested part of each document. `offset` and `limit` count characters or elements, within the pages."""

    offset: int = 0
    limit: int = PAGE_CHARACTERS
    pages: PageRange | None = None
    format: PartFormat = "text"

    def widest(self, most: int) -> int:
        """Return the most characters of a document to show. Elements are counted differently, but share the limit."""
        return min(self.limit if self.format == "text" else PAGE_CHARACTERS, most)

    def next(self, id: str, offset: int) -> str:
        """Return the call for the next part."""
        more: dict[str, Json] = {"ids": [id], "offset": offset}
        if self.limit != PAGE_CHARACTERS:
            more["limit"] = self.limit
        if self.pages is not None:
            more["pages"] = str(self.pages)
        if self.format != "text":
            more["format"] = self.format
        return f"read_files({dump(more).decode()})"


@dataclass(frozen=True, kw_only=True)
class PagesOfPart:
    """The pages, slides or sheets of a part, and their total. Pages after `last` up to `unread` were not read."""

    unit: Unit
    first: int
    last: int
    count: int | None
    unread: int = 0

    def __str__(self) -> str:
        of_all = "" if self.count is None else f" of {self.count}"
        were = "was" if self.unread == self.last + 1 else "were"
        missing = f" ({self._numbers(self.last + 1, self.unread)} {were} not read)" if self.unread > self.last else ""
        return f"{self._numbers(self.first, self.last)}{of_all}{missing}"

    def _numbers(self, first: int, last: int) -> str:
        return f"{self.unit} {first}" if first == last else f"{self.unit}s {first}-{last}"


@dataclass(frozen=True, kw_only=True)
class ShownPart:
    """The shown text of a part, and its count of characters or elements."""

    text: str
    count: int
    place: PagesOfPart | None


@dataclass(frozen=True, kw_only=True)
class TextPart:
    """Up to the displayable characters from `start` on, and one more if there is one.

    `total` is None while unknown; `place` covers all of them.
    """

    text: str
    start: int
    total: int | None
    place: PagesOfPart | None

    @property
    def count(self) -> int:
        """The number of characters."""
        return len(self.text)

    def shown(self, limit: int, wanted: WantedPart) -> ShownPart:
        """Return as many characters as the limit allows, without splitting any."""
        room = max(limit, min(wanted.limit, NEVER_CUT))
        # The part starts at the requested offset: moving it back could show the same page forever.
        end = len(self.text) if len(self.text) <= room else boundary(self.text, limit) or limit
        return ShownPart(text=neutralise(self.text[:end], FRAME_TAGS), count=end, place=self.place)


@dataclass(frozen=True, kw_only=True)
class ElementsPart:
    """Up to the displayable elements from `start` on, and one more if there is one, each with its JSON.

    `place` covers the whole document, or the requested pages.
    """

    elements: tuple[Element, ...]
    texts: tuple[str, ...]
    start: int
    total: int | None
    place: PagesOfPart | None

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self.elements)

    def shown(self, limit: int, wanted: WantedPart) -> ShownPart:
        """Return as many elements as fit, at least one, which is shortened if necessary."""
        room = max(limit, NEVER_CUT)
        # Each element adds a comma or bracket, and the last one a bracket more.
        ends = accumulate([len(text) + 1 for text in self.texts[: wanted.limit]])
        count = sum(end < room for end in ends)
        texts = self.texts[:count] or (_shortened(self.elements[0], room - 2),)
        return ShownPart(text=f"[{','.join(texts)}]", count=len(texts), place=self._place(len(texts), wanted))

    def _place(self, count: int, wanted: WantedPart) -> PagesOfPart | None:
        pages = [element.page for element in self.elements[:count] if element.page is not None]
        if self.place is None or wanted.pages is not None:
            return self.place
        return replace(self.place, first=min(pages), last=max(pages)) if pages else None


DocumentPart: TypeAlias = TextPart | ElementsPart


async def take_part(document: Document, wanted: WantedPart, most: int) -> DocumentPart | str:
    """Return the requested part, or a text with the reason why there is none."""
    match wanted.format:
        case "elements":
            return await _elements(document, wanted, most)
        case "text" if wanted.pages is not None:
            return await _text_of_pages(document, wanted, wanted.pages, most)
        case "text":
            return await _text(document, wanted, most)


async def _text(document: Document, wanted: WantedPart, most: int) -> DocumentPart | str:
    # One more than shown, to know whether there is more.
    count = wanted.widest(most) + 1
    excerpt = await document.characters(wanted.offset, count)
    text, extent = excerpt.text, excerpt.extent
    is_end = len(text) < count
    if is_end and not text.strip() and (wanted.offset == 0 or extent.characters == 0):
        return NO_TEXT
    if not text:
        return _past_end(wanted, extent.characters)
    known = extent.characters if extent.is_whole else None
    total = wanted.offset + len(text) if is_end else known
    # Text before the first page counts as part of it.
    place = _place(extent, excerpt.first_page or 1, excerpt.last_page)
    return TextPart(text=text, start=wanted.offset, total=total, place=place)


async def _text_of_pages(document: Document, wanted: WantedPart, pages: PageRange, most: int) -> DocumentPart | str:
    # One more than shown, to know whether there is more.
    excerpt = await document.pages(pages.first, pages.last, wanted.offset, wanted.widest(most) + 1)
    text, total = excerpt.text, excerpt.length
    if (missing := _missing(excerpt.extent, pages)) is not None:
        return missing
    place = _place_of(excerpt.extent, pages)
    if total == 0 or (len(text) == total and not text.strip()):
        return NO_TEXT_HERE.format(place=place)
    if not text:
        return _past_end(wanted, total or 0)
    return TextPart(text=text, start=wanted.offset, total=total, place=place)


async def _elements(document: Document, wanted: WantedPart, most: int) -> DocumentPart | str:
    room = wanted.widest(most)
    if wanted.pages is not None:
        return await _elements_of_pages(document, wanted, wanted.pages, room)
    found = await _gathered(document, wanted, room)
    if not found.elements:
        return _past_end(wanted, found.length) if found.length else NO_TEXT
    return _elements_part(found, wanted, room, _place(found.extent, 1, found.extent.pages))


async def _elements_of_pages(document: Document, wanted: WantedPart, pages: PageRange, room: int) -> DocumentPart | str:
    found = await _gathered(document, wanted, room)
    if (missing := _missing(found.extent, pages)) is not None:
        return missing
    place = _place_of(found.extent, pages)
    if not found.elements:
        return _past_end(wanted, found.length) if found.length else NO_TEXT_HERE.format(place=place)
    return _elements_part(found, wanted, room, place)


def _elements_part(found: Selection, wanted: WantedPart, room: int, place: PagesOfPart | None) -> ElementsPart:
    elements = tuple(map(harmless, found.elements[: _enough(found.elements, room)]))
    texts = tuple(map(json_of, elements))
    return ElementsPart(elements=elements, texts=texts, start=wanted.offset, total=found.length, place=place)


async def _gathered(document: Document, wanted: WantedPart, room: int) -> Selection:
    """Return the displayable elements, and one more if there is one. A few extra may be fetched."""
    found: list[Element] = []
    step = LEAST_AT_ONCE
    while True:
        count = min(step, wanted.limit + 1 - len(found))
        more = await _some(document, wanted.pages, wanted.offset + len(found), count)
        found += more.elements
        if len(more.elements) < count or len(found) > wanted.limit or len(found) >= _enough(found, room):
            return replace(more, elements=found)
        step = min(2 * step, MOST_AT_ONCE)


async def _some(document: Document, pages: PageRange | None, start: int, count: int) -> Selection:
    if pages is not None:
        return await document.page_elements(pages.first, pages.last, start, count)
    elements = await document.elements(start, count)
    extent = document.extent
    return Selection(elements=elements, extent=extent, length=extent.elements if extent.is_whole else None)


def _enough(found: Sequence[Element], room: int) -> int:
    """Return how many elements could be shown, plus one to know whether there is more."""
    sizes = accumulate([len(one.text) + LEAST_JSON for one in found])
    return max(sum(size <= room for size in sizes) + 1, 2)


def _missing(extent: Extent, pages: PageRange) -> str | None:
    if extent.unit is None:
        return failure(NO_PAGES)
    count = _page_count(extent)
    if count is not None and pages.first > count:
        return failure(NO_PAGE.format(unit=extent.unit, first=pages.first, count=count))
    if extent.is_whole and pages.first > extent.pages:
        return failure(NOT_READ.format(unit=extent.unit, first=pages.first, read=extent.pages, count=count))
    return None


def _past_end(wanted: WantedPart, total: int) -> str:
    what = "this text" if wanted.pages is None else "these pages"
    return failure(PAST_END.format(offset=wanted.offset, total=total, counted=COUNTED[wanted.format], what=what))


def _page_count(extent: Extent) -> int | None:
    return extent.pages if extent.page_count is None and extent.is_whole else extent.page_count


def _place_of(extent: Extent, pages: PageRange) -> PagesOfPart | None:
    count = _page_count(extent)
    last = pages.last if count is None else min(pages.last, count)
    read = min(last, extent.pages) if extent.is_whole else last
    place = _place(extent, pages.first, read)
    return replace(place, unread=last) if place else None


def _place(extent: Extent, first: int, last: int | None) -> PagesOfPart | None:
    if extent.unit is None or last is None:
        return None
    return PagesOfPart(unit=extent.unit, first=first, last=last, count=extent.page_count)


def content_of(id: str, part: DocumentPart, wanted: WantedPart, limit: int) -> str:
    """Return the shown text of a document, below its position and the next call. A whole document needs neither."""
    shown = part.shown(limit, wanted)
    is_all = part.start == 0 and shown.count == part.count
    if is_all and wanted.pages is None:
        return shown.text
    line = _where(part, shown, wanted, is_all)
    if shown.count < part.count:
        line += f"; for more: {wanted.next(id, part.start + shown.count)}"
    return f"[{line}]\n{shown.text}"


def _where(part: DocumentPart, shown: ShownPart, wanted: WantedPart, is_all: bool) -> str:
    numbers = f"{COUNTED[wanted.format]} {part.start + 1}-{part.start + shown.count}"
    if part.total is not None:
        numbers += f" of {part.total}"
    place = "" if shown.place is None else str(shown.place)
    rest = STILL_READ if part.total is None else ""
    if wanted.pages is None:
        return ", ".join(filter(None, (numbers, place))) + rest
    return place if is_all else f"{place}: {numbers}{rest}"


def harmless(element: Element) -> Element:
    """Return the element with our own tags neutralised: a JSON value would hide them from the later check (F3)."""
    rows = tuple([tuple([neutralise(cell, FRAME_TAGS) for cell in cells]) for cells in element.rows])
    return replace(element, text=neutralise(element.text, FRAME_TAGS), rows=rows)


def json_of(element: Element) -> str:
    """Return an element as JSON."""
    return dump(element_row(element)).decode()


def _shortened(element: Element, room: int) -> str:
    """Shorten an element to `room` characters: half for its rows, the rest for its text."""
    rows = _rows_within(element.rows, room // 2)
    fits, fails = 0, len(element.text) + 1
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if len(_less(element, middle, rows)) <= room else (fits, middle)
    return _less(element, boundary(element.text, fits), rows)


def _rows_within(rows: Sequence[tuple[str, ...]], room: int) -> int:
    return sum(end <= room for end in accumulate([len(dump(row)) for row in rows]))


def _less(element: Element, characters: int, rows: int) -> str:
    left_out: dict[str, Json] = {"characters": len(element.text) - characters}
    if element.rows:
        left_out["rows"] = len(element.rows) - rows
    short = replace(element, text=element.text[:characters], rows=element.rows[:rows])
    return dump({**element_row(short), "left_out": left_out}).decode()
