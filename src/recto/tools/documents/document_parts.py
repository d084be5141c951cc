"""Parts of a document: selection, extraction, and the text for the model. No file access.

A part is a range of characters or elements. Its text follows a line with its position. Reading stops when the answer is
full.
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
# Longest text that is never cut. The position line is about as long, so a cut would make the answer longer.
NEVER_CUT = 150
UNITS: dict[PartFormat, str] = {"text": "characters", "elements": "elements"}
STILL_READ = " (the rest is still being read)"
# Elements to fetch in the first step, because a few long ones fill an answer. Each further step doubles the number.
LEAST_AT_ONCE = 4
MOST_AT_ONCE = 64
# Fewest characters that JSON adds to the text of an element.
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
class PartRequest:
    """The requested part of each document. `offset` and `limit` count characters or elements, within the pages."""

    offset: int = 0
    limit: int = PAGE_CHARACTERS
    pages: PageRange | None = None
    format: PartFormat = "text"

    def widest(self, most: int) -> int:
        """Return the character limit of a part. For elements, `limit` counts elements, so the default character limit
        applies.
        """
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
class RenderedPart:
    """The shown text of a part, and its count of characters or elements."""

    text: str
    count: int
    place: PagesOfPart | None


@dataclass(frozen=True, kw_only=True)
class TextPart:
    """Characters from `start` on, plus one if there are more. `total` is None while unknown; `place` covers all of
    them.
    """

    text: str
    start: int
    total: int | None
    place: PagesOfPart | None

    @property
    def count(self) -> int:
        """The number of characters."""
        return len(self.text)

    def render(self, limit: int, request: PartRequest) -> RenderedPart:
        """Return as many characters as the limit allows, without splitting a visible character."""
        room = max(limit, min(request.limit, NEVER_CUT))
        # The part starts at the requested offset: moving it back could show the same page forever.
        end = len(self.text) if len(self.text) <= room else boundary(self.text, limit) or limit
        return RenderedPart(text=neutralise(self.text[:end], FRAME_TAGS), count=end, place=self.place)


@dataclass(frozen=True, kw_only=True)
class ElementsPart:
    """Elements from `start` on, plus one if there are more, and the JSON of each. `place` covers the document or the
    pages.
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

    def render(self, limit: int, request: PartRequest) -> RenderedPart:
        """Return as many elements as fit, at least one, which is shortened if necessary."""
        room = max(limit, NEVER_CUT)
        # JSON adds a comma or bracket for each element, and a closing bracket.
        ends = accumulate([len(text) + 1 for text in self.texts[: request.limit]])
        count = sum(end < room for end in ends)
        texts = self.texts[:count] or (_shorten_element(self.elements[0], room - 2),)
        return RenderedPart(text=f"[{','.join(texts)}]", count=len(texts), place=self._place(len(texts), request))

    def _place(self, count: int, request: PartRequest) -> PagesOfPart | None:
        pages = [element.page for element in self.elements[:count] if element.page is not None]
        if self.place is None or request.pages is not None:
            return self.place
        return replace(self.place, first=min(pages), last=max(pages)) if pages else None


DocumentPart: TypeAlias = TextPart | ElementsPart


async def extract_part(document: Document, request: PartRequest, most: int) -> DocumentPart | str:
    """Return the requested part, or a text with the reason why there is none."""
    if request.format == "elements":
        return await _elements(document, request, most)
    if request.pages is not None:
        return await _text_of_pages(document, request, request.pages, most)
    return await _text(document, request, most)


async def _text(document: Document, request: PartRequest, most: int) -> DocumentPart | str:
    # Request one more character than is shown, to know if the text continues.
    count = request.widest(most) + 1
    excerpt = await document.characters(request.offset, count)
    text, extent = excerpt.text, excerpt.extent
    is_end = len(text) < count
    if is_end and not text.strip() and (request.offset == 0 or extent.characters == 0):
        return NO_TEXT
    if not text:
        return _past_end(request, extent.characters)
    total_if_read = extent.characters if extent.is_whole else None
    total = request.offset + len(text) if is_end else total_if_read
    # Text before the first page counts as part of it.
    place = _place(extent, excerpt.first_page or 1, excerpt.last_page)
    return TextPart(text=text, start=request.offset, total=total, place=place)


async def _text_of_pages(document: Document, request: PartRequest, pages: PageRange, most: int) -> DocumentPart | str:
    # Request one more character than is shown, to know if the text continues.
    excerpt = await document.pages(pages.first, pages.last, request.offset, request.widest(most) + 1)
    text, total = excerpt.text, excerpt.length
    if (missing := _missing(excerpt.extent, pages)) is not None:
        return missing
    place = _place_of(excerpt.extent, pages)
    if total == 0 or (len(text) == total and not text.strip()):
        return NO_TEXT_HERE.format(place=place)
    if not text:
        return _past_end(request, total or 0)
    return TextPart(text=text, start=request.offset, total=total, place=place)


async def _elements(document: Document, request: PartRequest, most: int) -> DocumentPart | str:
    pages, room = request.pages, request.widest(most)
    selection = await _gathered(document, request, room)
    extent = selection.extent
    if pages is not None and (missing := _missing(extent, pages)) is not None:
        return missing
    place = _place(extent, 1, extent.pages) if pages is None else _place_of(extent, pages)
    if not selection.elements and selection.length:
        return _past_end(request, selection.length)
    if not selection.elements:
        return NO_TEXT if pages is None else NO_TEXT_HERE.format(place=place)
    # Neutralise our own tags here, because JSON would hide them from the later check (F3).
    elements = list[Element]()
    for one in selection.elements[: _count_needed(selection.elements, room)]:
        rows = tuple([tuple([neutralise(cell, FRAME_TAGS) for cell in cells]) for cells in one.rows])
        elements.append(replace(one, text=neutralise(one.text, FRAME_TAGS), rows=rows))
    texts = tuple([dump(element_row(one)).decode() for one in elements])
    return ElementsPart(
        elements=tuple(elements), texts=texts, start=request.offset, total=selection.length, place=place
    )


async def _gathered(document: Document, request: PartRequest, room: int) -> Selection:
    """Return the elements that fit, plus one if there are more. The result may contain a few extra elements."""
    elements: list[Element] = []
    step = LEAST_AT_ONCE
    while True:
        start, count = request.offset + len(elements), min(step, request.limit + 1 - len(elements))
        if request.pages is not None:
            more = await document.page_elements(request.pages.first, request.pages.last, start, count)
        else:
            some, extent = await document.elements(start, count), document.extent
            more = Selection(elements=some, extent=extent, length=extent.elements if extent.is_whole else None)
        elements += more.elements
        is_enough = len(elements) > request.limit or len(elements) >= _count_needed(elements, room)
        if len(more.elements) < count or is_enough:
            return replace(more, elements=elements)
        step = min(2 * step, MOST_AT_ONCE)


def _count_needed(elements: Sequence[Element], room: int) -> int:
    """Return how many elements fit, plus one to know if there are more."""
    sizes = accumulate([len(one.text) + LEAST_JSON for one in elements])
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


def _past_end(request: PartRequest, total: int) -> str:
    what = "this text" if request.pages is None else "these pages"
    return failure(PAST_END.format(offset=request.offset, total=total, counted=UNITS[request.format], what=what))


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


def format_content(id: str, part: DocumentPart, request: PartRequest, limit: int) -> str:
    """Return the text of a part below a line with its position and the next call. A whole document has no such line."""
    part_text = part.render(limit, request)
    is_all = part.start == 0 and part_text.count == part.count
    if is_all and request.pages is None:
        return part_text.text
    numbers = f"{UNITS[request.format]} {part.start + 1}-{part.start + part_text.count}"
    numbers += f" of {part.total}" if part.total is not None else ""
    place, rest = "" if part_text.place is None else str(part_text.place), STILL_READ if part.total is None else ""
    if request.pages is None:
        line = ", ".join(filter(None, (numbers, place))) + rest
    else:
        line = place if is_all else f"{place}: {numbers}{rest}"
    if part_text.count < part.count:
        line += f"; for more: {request.next(id, part.start + part_text.count)}"
    return f"[{line}]\n{part_text.text}"


def _shorten_element(element: Element, room: int) -> str:
    """Shorten an element to `room` characters: half for its rows, the rest for its text."""
    rows = sum(end <= room // 2 for end in accumulate([len(dump(row)) for row in element.rows]))
    fits, fails = 0, len(element.text) + 1
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if len(_cut_element(element, middle, rows)) <= room else (fits, middle)
    return _cut_element(element, boundary(element.text, fits), rows)


def _cut_element(element: Element, characters: int, rows: int) -> str:
    left_out: dict[str, Json] = {"characters": len(element.text) - characters}
    if element.rows:
        left_out["rows"] = len(element.rows) - rows
    short = replace(element, text=element.text[:characters], rows=element.rows[:rows])
    return dump({**element_row(short), "left_out": left_out}).decode()
