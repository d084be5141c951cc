"""Parts of documents as JSON that is never cut: where it would be too long, all parts are shorter. Chooses no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from recto.conversation.document import Element, Extent, Selection
from recto.conversation.input_files import InputFile
from recto.conversation.json import Json, dump
from recto.errors import FileRefused, StorageDown, ToolError
from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.documents.document_parts import (
    COUNTED,
    DocumentPart,
    ElementsPart,
    PageRange,
    PagesOfPart,
    TextPart,
    WantedPart,
    content_of,
    harmless,
    json_of,
)
from recto.tools.documents.read_many import NAME_SHOWN, NO_TEXT, REPORT_SECONDS, Unread, failure, files_of, read_each
from recto.tools.ports import Document, ToolContext

# A few long elements are all that can be shown; where they are short, more are taken in a step.
LEAST_AT_ONCE = 4
MOST_AT_ONCE = 64
# No element is shorter as JSON than its text and this.
LEAST_JSON = 20
NO_PAGES = "it has no pages to choose from. Leave `pages` out, and go through it with `offset` and `limit`."
NO_PAGE = "there is no {unit} {first}: it has {count}."
NOT_READ = (
    "{unit} {first} was not read: only the first {read} of {count} {unit}s were. "
    "Ask the user for that part as a file of its own."
)
NO_TEXT_HERE = "[there is no text on {place}]"
PAST_END = "offset {offset} is past the end: there are {total} {counted} in {what}."


async def take_part(document: Document, wanted: WantedPart, most: int) -> DocumentPart | str:
    """The part that is wanted, of which at most so many characters can be shown; in its place, why there is none."""
    match wanted.format:
        case "elements":
            return await _elements(document, wanted, most)
        case "text" if wanted.pages is not None:
            return await _text_of_pages(document, wanted, wanted.pages, most)
        case "text":
            return await _text(document, wanted, most)


async def _text(document: Document, wanted: WantedPart, most: int) -> DocumentPart | str:
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


async def _text_of_pages(document: Document, wanted: WantedPart, pages: PageRange, most: int) -> DocumentPart | str:
    # With one more, to know whether there is one.
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
    """The elements that may be shown, and one more if there is one. No more are held than that, but for a few."""
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
    """How many of them could be shown, and one more: to know whether there is one."""
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


NO_ROOM = "Even a part of each of these {count} files does not fit into {most} characters. Ask for fewer at a time."


@dataclass(frozen=True, kw_only=True)
class DocumentRequest:
    """A document that is asked for, or, in the place of the file, why there is none."""

    id: str
    file: InputFile | str


@dataclass(frozen=True, kw_only=True)
class _Taken:
    """A document with what was taken of it, or with what there is to say instead."""

    document: Document
    part: DocumentPart | str


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A file as it is answered. A part that is not said in words has its document beside it."""

    id: str
    name: str
    read: _Taken | str


async def show_documents(
    asked: Sequence[DocumentRequest], wanted: WantedPart, context: ToolContext, report_seconds: float = REPORT_SECONDS
) -> str:
    """JSON `[{"id","name","content"}]` in the order asked. What cannot be read says why, and spoils no other (F5)."""

    async def take(document: Document) -> _Taken:
        return _Taken(document=document, part=await take_part(document, wanted, context.characters))

    files = {one.id: one.file for one in asked if isinstance(one.file, InputFile)}
    read = await read_each(tuple(files.values()), take, files_of(context), context.report, report_seconds)
    known = dict(zip(files, read, strict=True))
    rows = [_row(one, known) for one in asked]
    limit = _fitting(rows, wanted, context.characters)
    return _answer([await _placed(row, wanted, limit) for row in rows], wanted, limit)


def _row(asked: DocumentRequest, known: dict[str, _Taken | Unread]) -> _Row:
    if isinstance(asked.file, str):
        return _Row(id=asked.id[:NAME_SHOWN], name="", read=failure(asked.file))
    read = known[asked.id]
    name = neutralise(asked.file.name[:NAME_SHOWN], FRAME_TAGS)
    return _Row(id=asked.id, name=name, read=failure(read.reason) if isinstance(read, Unread) else read)


def _fitting(rows: Sequence[_Row], wanted: WantedPart, most: int) -> int:
    """How long the parts may be: as asked for, or, where that is too much, the longest found that fits."""
    fits, fails = 0, wanted.widest(most)
    if len(_answer(rows, wanted, fails)) <= most:
        return fails
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if len(_answer(rows, wanted, middle)) <= most else (fits, middle)
    if not fits:
        raise ToolError(NO_ROOM.format(count=len(rows), most=most))
    return fits


def _answer(rows: Sequence[_Row], wanted: WantedPart, limit: int) -> str:
    answer: Json = [{"id": row.id, "name": row.name, "content": _content(row, wanted, limit)} for row in rows]
    return dump(answer).decode()


def _content(row: _Row, wanted: WantedPart, limit: int) -> str:
    match row.read:
        case str() as said:
            return said
        case _Taken(part=part):
            return part if isinstance(part, str) else content_of(row.id, part, wanted, limit)


async def _placed(row: _Row, wanted: WantedPart, limit: int) -> _Row:
    """The row with the page its text ends on. Which that is shows only now; it is never a later one than before."""
    match row.read:
        case _Taken(document=document, part=TextPart(place=place) as part) if place and not wanted.pages:
            count = part.shown(limit, wanted).count
            try:
                last = (await document.characters(part.start, count)).last_page
            except (FileRefused, StorageDown):
                last = None
            there = None if last is None else replace(place, last=last)
            return replace(row, read=_Taken(document=document, part=replace(part, place=there)))
        case _:
            return row
