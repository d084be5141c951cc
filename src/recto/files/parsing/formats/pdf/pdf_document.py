"""PDFs, parsed a few pages at first and then more at a time. Scanned pages are read by OCR or get a note."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, chain, groupby, repeat

from recto.conversation.document import Element
from recto.files.parsing.formats.pdf.columns import insert_tables
from recto.files.parsing.formats.pdf.pdfium import FEW_LETTERS, PageSight, Pdf, Rules, count_letters, open_pdf
from recto.files.parsing.formats.xberg_document import elements_of, extract, link
from recto.files.parsing.ports import DAMAGED, DocumentStart, FoundElements, Frame, Task, UnreadableDocument

# Numbers of pages to parse together. The first pages arrive early; larger parts are faster per page.
CHUNKS = (4, 16, 32)
PART_SECONDS = 0.25
# Number of damaged pages in a row after which parsing ends. A file may claim to have millions of pages.
LOST_IN_A_ROW = 20
# Use the text of pdfium if its letters exceed those of xberg by this ratio and this number.
MISSED_RATIO = 1.3
MISSED_CHARACTERS = 20
# Largest share of empty cells in a table without lines. A sparser one is text in columns.
EMPTY_SHARE = 0.3
# xberg has split words if their mean length is at most SHORT_WORD and those of pdfium are LONGER_WORDS times as long.
SHORT_WORD = 3
LONGER_WORDS = 3
# The share of the time limit for headings and tables. Text alone takes a fraction of it.
STRUCTURE_SHARE = 0.5

PLAIN = "[from here on the text is without headings and tables: this document takes long to read]"
BY_OCR = "[the text of this page was read from a picture by OCR and may have mistakes]"


def parse_pdf(data: bytes, task: Task) -> Iterator[Frame]:
    """Yield the pages in order. Raise UnreadableDocument."""
    with open_pdf(data) as document:
        count = document.page_count
        if count and not any(map(document.has_page, range(min(count, LOST_IN_A_ROW)))):
            raise UnreadableDocument(DAMAGED)
        yield DocumentStart(unit="page", page_count=count)
        # Combine pages up to these ends. Yield earlier after some time, and before OCR, which may take seconds.
        pages = _pages(document, task)
        ends = {pages.stop for pages in _chunks(count)}
        ready, last_time, last = list[Element](), time.monotonic(), 0
        for batch in pages:
            ready, last = [*ready, *batch.elements], batch.pages
            if last in ends or batch.scans or time.monotonic() - last_time > PART_SECONDS:
                yield FoundElements(elements=tuple(ready), pages=last, scans=batch.scans)
                ready, last_time = [], time.monotonic()
        if ready:
            yield FoundElements(elements=tuple(ready), pages=last)


def _pages(pdf: Pdf, task: Task) -> Iterator[FoundElements]:
    scanner, structure, damaged_count = Scanner(task), Structure(task.limits.seconds * STRUCTURE_SHARE), 0
    for pages in _chunks(pdf.page_count):
        sights, was_slow = [pdf.examine(place) for place in pages], structure.is_slow
        scans = sum(sight.is_scan for sight in sights if sight)
        if scans and not scanner.is_announced and scanner.reader is None:
            scanner.is_announced = True
            yield _note(_scan_note(scans, len(pages), pdf.page_count, task), pages.start)
        structured = structure.of(pdf, pages)
        if structure.is_slow and not was_slow:
            yield _note(PLAIN, pages.start)
        for place, sight in zip(pages, sights, strict=True):
            damaged_count = 0 if sight else damaged_count + 1
            if sight:
                yield from _page(pdf, place, complete_page(structured[place], sight, place + 1), sight, scanner)
                continue
            page, count = place + 1, pdf.page_count
            elements = [_mark(page), _paragraph(f"[page {page} is damaged and cannot be read]", page)]
            if damaged_count == LOST_IN_A_ROW and page < count:
                text = f"[the pages after it, up to {count}, were not tried any more]"
                elements.append(Element(kind="note", text=text, page=page))
            yield FoundElements(elements=tuple(elements), pages=page)
            if damaged_count == LOST_IN_A_ROW:
                return


def _note(text: str, pages: int) -> FoundElements:
    return FoundElements(elements=(Element(kind="note", text=text),), pages=pages)


def _mark(page: int) -> Element:
    return Element(kind="page", text=f"[page {page}]", page=page)


def _paragraph(text: str, page: int | None) -> Element:
    return Element(kind="paragraph", text=text, page=page)


class Scanner:
    """OCR of scanned pages, within limits on pages and seconds."""

    def __init__(self, task: Task) -> None:
        self.is_announced = False
        self._task = task
        self._pages_left = task.limits.ocr_pages
        self._seconds_left = task.limits.ocr_seconds

    @cached_property
    def reader(self) -> PageReader | None:
        """The OCR program; None if it is missing."""
        return reader_for(self._task.ocr)

    def elements(self, pdf: Pdf, place: int, text: str) -> Iterator[Element]:
        """Yield the OCR text of a scan, or a note."""
        page, has = place + 1, "little text" if text else "no text"
        if self.reader is None or self._pages_left <= 0 or self._seconds_left <= 0:
            most = self._task.limits.ocr_pages
            reason = f", and only {most} scans of a document are read" if self._pages_left <= 0 else ", and time is up"
            yield _paragraph(f"[page {page} has {has}: it is a scan{reason if self.reader else ''}]", page)
            return
        start = time.monotonic()
        ocr_text = self.reader.read(pdf.picture(place), self._seconds_left)
        self._pages_left -= 1
        self._seconds_left -= time.monotonic() - start
        # Leave out text that the page itself contains.
        page_text = "".join(text.split())
        blocks = [one.strip() for one in (ocr_text or "").split("\n\n") if "".join(one.split()) not in page_text]
        if blocks:
            yield Element(kind="note", text=BY_OCR, page=page)
            yield from (_paragraph(block, page) for block in blocks)
        else:
            more = "more text" if page_text else "text"
            yield _paragraph(f"[page {page} has no {more} that OCR could read: it is a scan]", page)


def _scan_note(scans: int, looked_at: int, count: int, task: Task) -> str:
    of_all = f"{scans} of {count} pages are scans" if looked_at == count else "Pages of this document are scans"
    pages = "This document is a scan" if scans == count else of_all
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


class Structure:
    """Headings and tables from xberg, within a time limit."""

    def __init__(self, seconds: float) -> None:
        self.is_slow = False
        self._seconds_left = seconds
        self._of_a_page = 0.0

    def of(self, pdf: Pdf, pages: Sequence[int]) -> defaultdict[int, list[Element]]:
        """Return the elements of each page; none if xberg fails or would probably take too long."""
        self.is_slow = self.is_slow or self._of_a_page * len(pages) > self._seconds_left
        if self.is_slow:
            return defaultdict(list)
        start, elements = time.monotonic(), defaultdict[int, list[Element]](list)
        rules = cache(pdf.rules)
        with suppress(UnreadableDocument):
            document = extract(pdf.part(pages), "pdf").document
            for element in elements_of(document.nodes) if document else ():
                if element.page is not None and element.page <= len(pages):
                    place = pages[element.page - 1]
                    elements[place] += _unwrap_sparse_table(replace(element, page=place + 1), rules)
        seconds = time.monotonic() - start
        self._seconds_left -= seconds
        self._of_a_page = seconds / len(pages)
        return elements


def _unwrap_sparse_table(element: Element, rules: Callable[[int], Rules]) -> Iterator[Element]:
    """Yield the rows of a sparse table without lines as paragraphs, because they are text in columns.

    Yield any other element unchanged.
    """
    rows, cells = element.rows, [cell for row in element.rows for cell in row]
    if element.kind in ("table", "rows") and cells.count("") > EMPTY_SHARE * len(cells):
        page_rules = rules((element.page or 1) - 1)
        # Drawn lines separate all columns or all rows of a table; its outer frame may be open.
        if page_rules.upright < max(2, len(rows[0]) - 1) and page_rules.across < max(2, len(rows) - 1):
            lines = (" ".join(filter(None, row)) for row in rows)
            yield from (_paragraph(line, element.page) for line in lines if line)
            return
    yield element


def _page(
    pdf: Pdf, place: int, elements: Sequence[Element], sight: PageSight, scanner: Scanner
) -> Iterator[FoundElements]:
    """Yield a page; before the first OCR page, announce it."""
    page, text = place + 1, "\n".join(one.text for one in elements)
    is_scan = sight.is_scan and count_letters(text) < FEW_LETTERS
    if is_scan and not scanner.is_announced and scanner.reader:
        scanner.is_announced = True
        yield FoundElements(pages=place, scans=True)
    # The links that the text does not contain.
    new = {one.url: one.label for one in reversed(sight.links) if one.url not in text}
    links = ", ".join(link(label or url, url) for url, label in reversed(new.items()))
    yield FoundElements(
        elements=(
            _mark(page),
            *elements,
            *(scanner.elements(pdf, place, text) if is_scan else ()),
            *[_paragraph(remark, page) for remark in sight.remarks],
            *([_paragraph(f"Links: {links}", page)] if links else []),
        ),
        pages=page,
    )


def complete_page(structured: Sequence[Element], sight: PageSight, page: int) -> Sequence[Element]:
    """Add lines that only pdfium found.

    If xberg missed much text or split words, return the text of pdfium instead.
    """
    letter_count, text = sum(count_letters(one.text) for one in structured), sight.text
    cells = [cell for one in structured for cell in (chain.from_iterable(one.rows) if one.rows else [one.text])]
    # If xberg reads vertical text across, its words are single characters of different lines.
    length = _word_length(" ".join(cells))
    is_read_across = 0 < length <= SHORT_WORD and _word_length(text) >= LONGER_WORDS * length
    if is_read_across or count_letters(text) > MISSED_RATIO * letter_count + MISSED_CHARACTERS:
        return insert_tables([_paragraph(text.strip(), page)], sight.tables, page)
    return add_missed_lines(order_lines(insert_tables(structured, sight.tables, page), text), text, page)


def _word_length(text: str) -> float:
    words = text.split()
    return sum(map(len, words)) / max(1, len(words))


# Share of a line that other elements must contain, in any order, so that the line is not missing.
FOUND_SHARE = 0.5
# Longest page to compare. Longer pages are slow to compare, and are drawings.
MOST_CHARACTERS = 100_000
# A word, or a few characters of a script without blanks.
_PIECE = re.compile(r".{1,8}")
_NO_LETTERS = re.compile(r"[\W_]+")


def add_missed_lines(elements: Sequence[Element], text: str, page: int) -> list[Element]:
    """Insert the lines of the page text that no element contains, as paragraphs."""
    bare = [bare_letters(one.text) for one in elements]
    if len(text) > MOST_CHARACTERS or bare_letters(text) in "".join(bare):
        return list(elements)
    missed: defaultdict[int, list[str]] = defaultdict(list)
    for after, line in _missed(bare, text):
        missed[after].append(line)
    result = [_paragraph("\n".join(missed[0]), page)] if 0 in missed else []
    for place, element in enumerate(elements, 1):
        lines = missed.get(place)
        result += [element, _paragraph("\n".join(lines), page)] if lines else [element]
    return result


def bare_letters(text: str) -> str:
    """Return only the letters and digits of a text, normalized."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text))


def _missed(bare: Sequence[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield missing lines, each with the number of elements before it."""
    whole, ends = "".join(bare), list(accumulate(map(len, bare)))
    after = 0
    for line in text.splitlines():
        letters = bare_letters(line)
        if (at := whole.find(letters)) >= 0:
            after = min(len(bare), bisect_right(ends, at) + 1) if letters else after
            continue
        pieces = [piece for word in line.split() for piece in _PIECE.findall(bare_letters(word))]
        if sum(len(one) for one in pieces if one in whole) < FOUND_SHARE * sum(map(len, pieces)):
            yield after, line.strip()


PROGRAM = "tesseract"
LIST_SECONDS = 20
_CHINESE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"
# Blanks that tesseract puts between Chinese characters.
_GAP = re.compile(rf"(?<={_CHINESE}) +(?={_CHINESE})")


@dataclass(frozen=True, kw_only=True)
class PageReader:
    """OCR of pages by tesseract, in some languages."""

    program: str
    languages: tuple[str, ...]

    def read(self, picture: bytes, seconds: float) -> str | None:
        """Return the text of a page, given as a PGM picture; None after an error or a timeout."""
        command = [self.program, "stdin", "stdout", "-l", "+".join(self.languages)]
        output = _run(command, picture, seconds)
        return None if output is None else _GAP.sub("", output.decode("utf-8", "replace")).replace("\f", "").strip()


def reader_for(languages_text: str) -> PageReader | None:
    """Return a reader for the installed ones of the languages, which are joined by `+`; None if none is installed."""
    program = shutil.which(PROGRAM) if languages_text else None
    output = _run([program, "--list-langs"], b"", LIST_SECONDS) if program else None
    if program is None or output is None:
        return None
    installed = frozenset(output.decode("utf-8", "replace").split("\n")[1:])
    languages = tuple(one for one in dict.fromkeys(languages_text.split("+")) if one in installed)
    return PageReader(program=program, languages=languages) if languages else None


def _run(command: Sequence[str], data: bytes, seconds: float) -> bytes | None:
    # Use one thread: several slow each other down on one page.
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - the languages are installed ones, and nothing else comes from outside
            command, input=data, capture_output=True, timeout=seconds, check=True, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LATIN = re.compile("[A-Za-z]")
_MARK = re.compile(r"#+ |\s*(?:-|\S{1,9}[.)]) ")
# Longest unit or currency after a number, in letters.
_UNIT = 3


def order_lines(elements: Sequence[Element], text: str) -> list[Element]:
    """Give right-to-left elements the line order of pdfium if pdfium has the same letters."""
    if not _RIGHT.search(text):
        return list(elements)
    lines = [line.strip() for line in text.splitlines()]
    letters = [bare_letters(line) for line in lines]
    ends = {end: place for place, end in enumerate([0, *accumulate(map(len, letters))])}
    return [
        _reorder(one, lines, letters, ends) if not one.rows and _RIGHT.search(one.text) else one for one in elements
    ]


def _reorder(element: Element, lines: Sequence[str], letters: Sequence[str], ends: dict[int, int]) -> Element:
    mark = _MARK.match(element.text) if element.kind in ("heading", "item") else None
    prefix = mark[0] if mark else ""
    letters_of_element = bare_letters(element.text[len(prefix) :])
    for end, start in ends.items():
        stop = ends.get(end + len(letters_of_element), start)
        if stop > start and Counter("".join(letters[start:stop])) == Counter(letters_of_element):
            between = " " if mark else "\n"
            return replace(element, text=prefix + between.join(filter(None, map(_reading_order, lines[start:stop]))))
    return element


def _reading_order(line: str) -> str:
    """Return a line in reading order. In right-to-left lines, pdfium reverses the order of Latin words."""
    runs = [(key, list(run)) for key, run in groupby(line.split(" "), key=lambda word: _RIGHT.search(word) is None)]
    if 2 * sum(is_left for is_left, _ in runs) > len(runs):
        return line
    words = list[str]()
    for is_left, run in runs:
        names = [word for word in run if is_left and _LATIN.search(word)]
        is_name = len(names) > 1 or any(len(_LATIN.findall(word)) > _UNIT for word in names)
        words += reversed(run) if is_name else run
    return " ".join(words)
