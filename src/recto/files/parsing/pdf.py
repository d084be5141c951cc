"""PDFs, a few pages first and then more at a time. Scans say that they are, or are read where that is asked for."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat

from recto.files.parsing.extraction import extract
from recto.files.parsing.nodes import elements_of, link
from recto.files.parsing.ocr import Reader, reader_for
from recto.files.parsing.pdfium import PageSight, Pdf, open_pdf
from recto.files.parsing.ports import Found, Frame, Opened, Task
from recto.files.parsing.refusal import DAMAGED, Unreadable
from recto.page.document import Element

# The first pages are there at once; larger parts are quicker as a whole.
CHUNKS = (4, 16, 32)
# Pages that are looked at for scans before anything is said.
LOOKED_AT = 300
TOLD_SECONDS = 0.25
# So many damaged pages one after another are no pages: a file may claim to have millions.
LOST_IN_A_ROW = 20
# Where pdfium sees that much more than xberg, xberg has missed something.
MISSED_RATIO = 1.3
MISSED_CHARACTERS = 20
# A table with more empty cells than these is text that only looked like one.
EMPTY_SHARE = 0.3

BY_OCR = "[the text of this page was read from a picture by OCR and may have mistakes]"


def pdf(data: bytes, task: Task) -> Iterator[Frame]:
    """The pages in their order. Raises Unreadable."""
    with open_pdf(data) as opened:
        count = opened.page_count
        if count and not any(map(opened.has_page, range(min(count, LOST_IN_A_ROW)))):
            raise Unreadable(DAMAGED)
        yield Opened(unit="page", page_count=count)
        scans = sum(opened.is_scan(place) for place in range(min(count, LOOKED_AT)))
        scanner = Scanner(task, reader_for(task.ocr) if scans or count > LOOKED_AT else None)
        if scans and scanner.reader is None:
            yield Found(elements=(Element(kind="note", text=_scan_note(scans, count, task)),))
        yield from _in_parts(_pages(opened, scanner), {pages.stop for pages in _chunks(count)})


def _in_parts(pages: Iterator[Found], ends: Container[int]) -> Iterator[Found]:
    """Pages told together up to these, or as soon as they took a while: a scan may take seconds."""
    ready, told, last = list[Element](), time.monotonic(), 0
    for found in pages:
        ready, last = [*ready, *found.elements], found.pages
        if last in ends or time.monotonic() - told > TOLD_SECONDS:
            yield Found(elements=tuple(ready), pages=last)
            ready, told = [], time.monotonic()
    if ready:
        yield Found(elements=tuple(ready), pages=last)


def _pages(pdf: Pdf, scanner: Scanner) -> Iterator[Found]:
    lost = 0
    for pages in _chunks(pdf.page_count):
        structured = _structured(pdf, pages)
        for place in pages:
            seen = pdf.look(place)
            lost = 0 if seen else lost + 1
            if seen:
                elements = _page(pdf, place, structured[place], scanner, seen)
            else:
                elements = _lost(place + 1, pdf.page_count, lost)
            yield Found(elements=tuple(elements), pages=place + 1)
            if lost == LOST_IN_A_ROW:
                return


def _lost(page: int, count: int, lost: int) -> Iterator[Element]:
    """A page that cannot be read. After too many of them it is the last."""
    yield Element(kind="page", text=f"[page {page}]", page=page)
    yield Element(kind="paragraph", text=f"[page {page} is damaged and cannot be read]", page=page)
    if lost == LOST_IN_A_ROW and page < count:
        yield Element(kind="note", text=f"[the pages after it, up to {count}, were not tried any more]", page=page)


class Scanner:
    """Reads scans as long as pages and seconds are left for it."""

    def __init__(self, task: Task, reader: Reader | None) -> None:
        self.reader = reader
        self._pages_left = task.limits.ocr_pages
        self._most_pages = task.limits.ocr_pages
        self._until = time.monotonic() + task.limits.ocr_seconds

    def elements(self, pdf: Pdf, place: int) -> Iterator[Element]:
        """What a scan says, or that it says nothing."""
        page = place + 1
        if self.reader is None:
            yield Element(kind="paragraph", text=f"[page {page} has no text: it is a scan]", page=page)
            return
        seconds = self._until - time.monotonic()
        if self._pages_left <= 0 or seconds <= 0:
            reason = f"only {self._most_pages} scans of a document are read" if self._pages_left <= 0 else "time is up"
            yield Element(kind="paragraph", text=f"[page {page} has no text: it is a scan, and {reason}]", page=page)
            return
        self._pages_left -= 1
        yield from _read(self.reader.read(pdf.picture(place), seconds), page)


def _read(text: str | None, page: int) -> Iterator[Element]:
    if not text:
        yield Element(kind="paragraph", text=f"[page {page} has no text that OCR could read: it is a scan]", page=page)
        return
    yield Element(kind="note", text=BY_OCR, page=page)
    for block in filter(None, map(str.strip, text.split("\n\n"))):
        yield Element(kind="paragraph", text=block, page=page)


def _scan_note(scans: int, count: int, task: Task) -> str:
    pages = "This document is a scan" if scans >= count else f"{scans} of {count} pages are scans"
    why = "OCR is not installed here, or not in these languages" if task.ocr else "OCR is off"
    return (
        f"[{pages}: pictures without text, and {why}. "
        "Ask the user for a copy with text, or for the words that matter, where they are needed.]"
    )


def _chunks(count: int) -> Iterator[range]:
    start = 0
    for size in chain(CHUNKS, repeat(CHUNKS[-1])):
        if start >= count:
            return
        yield range(start, min(count, start + size))
        start += size


def _structured(pdf: Pdf, pages: Sequence[int]) -> defaultdict[int, list[Element]]:
    """What xberg finds on each page; nothing where it fails."""
    found: defaultdict[int, list[Element]] = defaultdict(list)
    try:
        document = extract(pdf.part(pages), "pdf").document
    except Unreadable:
        return found
    for element in elements_of(document.nodes) if document else ():
        if element.page is not None and element.page <= len(pages):
            place = pages[element.page - 1]
            found[place] += [replace(one, page=place + 1) for one in _sober(element)]
    return found


def _sober(element: Element) -> Iterator[Element]:
    """A table that is mostly empty is text set in columns: its rows as lines."""
    cells = [cell for row in element.rows for cell in row]
    if element.kind not in ("table", "rows") or cells.count("") <= EMPTY_SHARE * len(cells):
        yield element
        return
    lines = (" ".join(filter(None, row)) for row in element.rows)
    yield from (Element(kind="paragraph", text=line, page=element.page) for line in lines if line)


def _page(pdf: Pdf, place: int, structured: Sequence[Element], scanner: Scanner, seen: PageSight) -> Iterator[Element]:
    page = place + 1
    yield Element(kind="page", text=f"[page {page}]", page=page)
    elements = fuller(structured, seen.text, page)
    yield from elements
    if not elements and seen.has_picture:
        yield from scanner.elements(pdf, place)
    yield from _links(seen, "\n".join(one.text for one in elements), page)


def fuller(structured: Sequence[Element], text: str, page: int) -> Sequence[Element]:
    """What xberg found on a page, or the bare text that pdfium sees, where that is more by far."""
    if _letters(text) <= MISSED_RATIO * sum(_letters(one.text) for one in structured) + MISSED_CHARACTERS:
        # Nothing by xberg is no answer to a word or two.
        return structured or [Element(kind="paragraph", text=one, page=page) for one in [text.strip()] if one]
    return [Element(kind="paragraph", text=text.strip(), page=page)]


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _links(seen: PageSight, text: str, page: int) -> Iterator[Element]:
    """The links that the text does not show, at the end of the page."""
    new = {one.url: one.label for one in reversed(seen.links) if one.url not in text}
    if new:
        listed = ", ".join(link(label or url, url) for url, label in reversed(new.items()))
        yield Element(kind="paragraph", text=f"Links: {listed}", page=page)
