"""What is taken of a document for a model: by characters, pages or elements. It waits for no more than is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from recto.page.document import Element, Extent
from recto.tools.document_parts import (
    COUNTED,
    ElementsPart,
    PageRange,
    Part,
    Place,
    TextPart,
    Wanted,
    harmless,
    json_of,
)
from recto.tools.documents import NO_TEXT, failure
from recto.tools.ports import Document

BATCH = 64
# On the way to a page far behind, more are looked at in a step.
MOST_AT_ONCE = 1_024
# No element is shorter as JSON than its text and this.
LEAST_JSON = 20
NO_PAGES = "it has no pages to choose from. Leave `pages` out, and go through it with `offset` and `limit`."
NO_PAGE = "there is no {unit} {first}: it has {count}."
NO_TEXT_HERE = "[there is no text on {place}]"
PAST_END = "offset {offset} is past the end: there are {total} {counted} in {what}."


async def take_part(document: Document, wanted: Wanted, most: int) -> Part | str:
    """The part that is wanted, of which at most so many characters can be shown; in its place, why there is none."""
    match wanted.format:
        case "elements":
            return await _elements(document, wanted, most)
        case "text" if wanted.pages is not None:
            return await _text_of_pages(document, wanted, wanted.pages, most)
        case "text":
            return await _text(document, wanted, most)


async def _text(document: Document, wanted: Wanted, most: int) -> Part | str:
    # With one more, to know whether there is one.
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
    # What stands before the first page is told as its own.
    place = _place(extent, excerpt.first_page or 1, excerpt.last_page)
    return TextPart(text=text, start=wanted.offset, total=total, place=place)


async def _text_of_pages(document: Document, wanted: Wanted, pages: PageRange, most: int) -> Part | str:
    excerpt = await document.pages(pages.first, pages.last)
    extent, whole = excerpt.extent, excerpt.text
    if (missing := _missing(extent, pages)) is not None:
        return missing
    place = _place(extent, excerpt.first_page or pages.first, excerpt.last_page or pages.last)
    if not whole.strip():
        return NO_TEXT_HERE.format(place=place)
    text = whole[wanted.offset : wanted.offset + wanted.widest(most) + 1]
    if not text:
        return _past_end(wanted, len(whole))
    return TextPart(text=text, start=wanted.offset, total=len(whole), place=place)


async def _elements(document: Document, wanted: Wanted, most: int) -> Part | str:
    if wanted.pages is not None:
        return await _elements_of_pages(document, wanted, wanted.pages, most)
    found, total = await _elements_from(document, wanted, wanted.widest(most))
    if not found:
        return _past_end(wanted, document.extent.elements) if document.extent.elements else NO_TEXT
    extent = document.extent
    return _elements_part(found, wanted, most, total, _place(extent, 1, extent.pages))


async def _elements_of_pages(document: Document, wanted: Wanted, pages: PageRange, most: int) -> Part | str:
    found = await _elements_on(document, pages)
    extent = document.extent
    if (missing := _missing(extent, pages)) is not None:
        return missing
    last = pages.last if extent.page_count is None else min(pages.last, extent.page_count)
    place = _place(extent, pages.first, last)
    if not found:
        return NO_TEXT_HERE.format(place=place)
    if wanted.offset >= len(found):
        return _past_end(wanted, len(found))
    return _elements_part(found[wanted.offset :], wanted, most, len(found), place)


def _elements_part(
    found: Sequence[Element], wanted: Wanted, most: int, total: int | None, place: Place | None
) -> ElementsPart:
    elements = tuple(map(harmless, _beginning(found, wanted.widest(most))))
    texts = tuple(map(json_of, elements))
    return ElementsPart(elements=elements, texts=texts, start=wanted.offset, total=total, place=place)


def _beginning(found: Sequence[Element], room: int) -> Sequence[Element]:
    """Those that could be shown, and one more: to know whether there is one."""
    sizes = accumulate([len(one.text) + LEAST_JSON for one in found])
    return found[: max(sum(size <= room for size in sizes) + 1, 2)]


async def _elements_from(document: Document, wanted: Wanted, room: int) -> tuple[Sequence[Element], int | None]:
    """The elements that may be shown and one more, and how many there are, if that is known."""
    found: list[Element] = []
    while True:
        batch = await document.elements(wanted.offset + len(found), BATCH)
        found += batch
        if len(batch) < BATCH:
            return found, wanted.offset + len(found)
        if len(found) > wanted.limit or len(_beginning(found, room)) < len(found):
            return found, document.extent.elements if document.extent.is_whole else None


async def _elements_on(document: Document, pages: PageRange) -> Sequence[Element]:
    """The elements of these pages. One that is on no page belongs to the page before it."""
    found: list[Element] = []
    start, page, count = 0, 1, BATCH
    while page <= pages.last:
        batch = await document.elements(start, count)
        for element in batch:
            page = page if element.page is None else element.page
            if pages.first <= page <= pages.last:
                found.append(element)
        start += len(batch)
        if len(batch) < count or document.extent.unit is None:
            break
        count = min(2 * count, MOST_AT_ONCE)
    return found


def _missing(extent: Extent, pages: PageRange) -> str | None:
    if extent.unit is None:
        return failure(NO_PAGES)
    count = extent.pages if extent.page_count is None else extent.page_count
    if (extent.page_count is not None or extent.is_whole) and pages.first > count:
        return failure(NO_PAGE.format(unit=extent.unit, first=pages.first, count=count))
    return None


def _past_end(wanted: Wanted, total: int) -> str:
    what = "this text" if wanted.pages is None else "these pages"
    return failure(PAST_END.format(offset=wanted.offset, total=total, counted=COUNTED[wanted.format], what=what))


def _place(extent: Extent, first: int, last: int | None) -> Place | None:
    if extent.unit is None or last is None:
        return None
    return Place(unit=extent.unit, first=first, last=last, count=extent.page_count)
