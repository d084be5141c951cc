"""The index of a cached document: where in its files each character, page and element is. Opens nothing.

Positions are known at marks some way apart; what lies between two is read whole, checked and counted.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast, get_args

import orjson

from recto.conversation.document import Element, ElementKind, Extent, Unit, element_row, joint
from recto.conversation.json import Json

# A character has at most four bytes, so that no two marks of the text are farther apart than twice MARK_BYTES. Those of
# elements are by as much as the last of them is longer.
MARK_BYTES = 2**14
_LENGTHS = ("characters", "text_bytes", "elements", "element_bytes", "text_sum", "element_sum")
# Of another layout, what is cached is made anew.
LAYOUT = 2
_SLICE_CHARACTERS = MARK_BYTES // 4


class Reach(NamedTuple):
    """Bytes of a file from `start` up to `end`, of which the first `skipped` are not wanted.

    `blocks` are where each block of them ends, and its checksum.
    """

    start: int
    end: int
    skipped: int
    blocks: tuple[tuple[int, int], ...]

    def checked(self, data: bytes) -> bytes:
        """These bytes, if they are what was written. Raises ValueError if they are not."""
        view, begin = memoryview(data), self.start
        for end, sum in self.blocks:
            if zlib.crc32(view[begin - self.start : end - self.start]) != sum:
                raise ValueError(f"the bytes from {begin} up to {end} are not what was written")
            begin = end
        return data


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """How long the text and the elements of a document are: in characters and bytes, in number and bytes.

    `last` is the kind of the last element, which says what stands between it and the next. The sums are checksums of
    what stands behind the last marks.
    """

    characters: int = 0
    text_bytes: int = 0
    elements: int = 0
    element_bytes: int = 0
    text_sum: int = 0
    element_sum: int = 0
    last: ElementKind | None = None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """More elements, set in the bytes that go into the files, with the marks that fall on them.

    The last number of a mark is the checksum of what stands between the one before and it. A page is given with the
    character and the element it begins with.
    """

    text: bytes
    lines: bytes
    lengths: Lengths
    text_marks: tuple[tuple[int, int, int], ...]
    element_marks: tuple[tuple[int, int, int], ...]
    pages: tuple[tuple[int, int, int], ...]


class Index:
    """The marks of one document. It grows by batches, in order."""

    def __init__(self) -> None:
        self.lengths = Lengths()
        self._characters = array("Q", [0])
        self._bytes = array("Q", [0])
        self._elements = array("Q", [0])
        self._element_bytes = array("Q", [0])
        self._text_sums = array("Q")
        self._element_sums = array("Q")
        self._pages = array("Q")
        self._page_starts = array("Q")
        self._page_elements = array("Q")

    def add(self, batch: Batch) -> None:
        """Take up what was written."""
        for characters, bytes, sum in batch.text_marks:
            self._characters.append(characters)
            self._bytes.append(bytes)
            self._text_sums.append(sum)
        for elements, bytes, sum in batch.element_marks:
            self._elements.append(elements)
            self._element_bytes.append(bytes)
            self._element_sums.append(sum)
        for page, start, element in batch.pages:
            # A number that does not rise names no page of its own.
            if not self._pages or page > self._pages[-1]:
                self._pages.append(page)
                self._page_starts.append(start)
                self._page_elements.append(element)
        self.lengths = batch.lengths

    @property
    def last_page(self) -> int:
        """The page that was begun last; 0 while there is none."""
        return self._pages[-1] if self._pages else 0

    def page_at(self, character: int) -> int | None:
        """The page a character stands on."""
        place = bisect_right(self._page_starts, character)
        return self._pages[place - 1] if place else None

    def pages_reach(self, first: int, last: int) -> tuple[int, int]:
        """The characters of pages, from one up to another; none where it has none of them.

        What stands before the first page is its beginning. The blank line before a page is the page's own.
        """
        return self._on_pages(self._page_starts, self.lengths.characters, first, last)

    def page_elements_reach(self, first: int, last: int) -> tuple[int, int]:
        """The elements of pages, in the same way."""
        return self._on_pages(self._page_elements, self.lengths.elements, first, last)

    def _on_pages(self, starts: array[int], total: int, first: int, last: int) -> tuple[int, int]:
        if not self._pages or first > last or first > self._pages[-1]:
            return total, total
        begin, end = bisect_left(self._pages, first), bisect_right(self._pages, last)
        start = starts[begin] if begin else 0
        stop = starts[end] if end < len(starts) else total
        return (start, stop) if end else (stop, stop)

    def text_reach(self, start: int, end: int) -> Reach:
        """The bytes that hold the characters from `start` up to `end`; `skipped` counts characters."""
        first, after = bisect_right(self._characters, start) - 1, bisect_left(self._characters, end)
        last = self.lengths.text_bytes, self.lengths.text_sum
        blocks = _blocks(self._bytes, self._text_sums, last, first, after)
        return Reach(self._bytes[first], blocks[-1][0], start - self._characters[first], blocks)

    def elements_reach(self, start: int, end: int) -> Reach:
        """The bytes that hold the elements from `start` up to `end`; `skipped` counts elements."""
        first, after = bisect_right(self._elements, start) - 1, bisect_left(self._elements, end)
        last = self.lengths.element_bytes, self.lengths.element_sum
        blocks = _blocks(self._element_bytes, self._element_sums, last, first, after)
        return Reach(self._element_bytes[first], blocks[-1][0], start - self._elements[first], blocks)

    def dump(self, extent: Extent) -> bytes:
        """The index as a file has it: its own checksum, then everything in it."""
        row: dict[str, object] = {
            "layout": LAYOUT,
            "lengths": [*_numbers(self.lengths), self.lengths.last],
            "unit": extent.unit,
            "read": extent.pages,
            "page_count": extent.page_count,
            "characters": self._characters.tolist(),
            "bytes": self._bytes.tolist(),
            "elements": self._elements.tolist(),
            "element_bytes": self._element_bytes.tolist(),
            "text_sums": self._text_sums.tolist(),
            "element_sums": self._element_sums.tolist(),
            "pages": self._pages.tolist(),
            "page_starts": self._page_starts.tolist(),
            "page_elements": self._page_elements.tolist(),
        }
        body = orjson.dumps(row)
        return hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    @classmethod
    def load(cls, data: bytes) -> tuple[Index, Extent]:
        """What `dump` made a file of. Raises KeyError, TypeError or ValueError for anything else."""
        checksum, _, body = data.partition(b"\n")
        if checksum != hashlib.sha256(body).hexdigest().encode():
            raise ValueError("the index is not whole")
        row = cast("Mapping[str, Json]", orjson.loads(body))
        if row["layout"] != LAYOUT:
            raise ValueError(f"the index has the layout {row['layout']}")
        index = cls()
        index._characters, index._bytes = _marks(row["characters"]), _marks(row["bytes"])
        index._elements, index._element_bytes = _marks(row["elements"]), _marks(row["element_bytes"])
        index._text_sums, index._element_sums = _marks(row["text_sums"]), _marks(row["element_sums"])
        index._pages, index._page_starts = _marks(row["pages"]), _marks(row["page_starts"])
        index._page_elements = _marks(row["page_elements"])
        index.lengths = _lengths(row["lengths"])
        unit = next((known for known in get_args(Unit) if known == row["unit"]), None)
        extent = Extent(unit=unit, pages=_number(row["read"]), page_count=_maybe(row["page_count"]), is_whole=True)
        return index, index.measured(extent)

    def measured(self, extent: Extent) -> Extent:
        """An extent with the lengths of now."""
        return replace(extent, characters=self.lengths.characters, elements=self.lengths.elements)


def set_elements(elements: Sequence[Element], lengths: Lengths, last_page: int) -> Batch:
    """Elements as the files of a document get them, which is so long by now and is on this page."""
    writer = _BatchWriter(lengths, last_page)
    for element in elements:
        writer.add(_writable(element))
    return writer.batch()


class _BatchWriter:
    def __init__(self, lengths: Lengths, last_page: int) -> None:
        self._now = lengths
        self._page = last_page
        self._text, self._lines = bytearray(), bytearray()
        self._text_marks: list[tuple[int, int, int]] = []
        self._element_marks: list[tuple[int, int, int]] = []
        self._pages: list[tuple[int, int, int]] = []

    def add(self, element: Element) -> None:
        now = self._now
        if element.kind == "page":
            self._page = element.page or self._page + 1
            self._pages.append((self._page, now.characters, now.elements))
        line = orjson.dumps(element_row(element)) + b"\n"
        self._lines += line
        element_bytes, element_sum = now.element_bytes + len(line), zlib.crc32(line, now.element_sum)
        if element_bytes // MARK_BYTES > now.element_bytes // MARK_BYTES:
            self._element_marks.append((now.elements + 1, element_bytes, element_sum))
            element_sum = 0
        characters, text_bytes, text_sum = now.characters, now.text_bytes, now.text_sum
        for piece in _slices(joint(now.last, element.kind) + element.text):
            bytes = piece.encode()
            self._text += bytes
            characters += len(piece)
            text_sum = zlib.crc32(bytes, text_sum)
            if (text_bytes + len(bytes)) // MARK_BYTES > text_bytes // MARK_BYTES:
                self._text_marks.append((characters, text_bytes + len(bytes), text_sum))
                text_sum = 0
            text_bytes += len(bytes)
        self._now = Lengths(
            characters=characters,
            text_bytes=text_bytes,
            elements=now.elements + 1,
            element_bytes=element_bytes,
            text_sum=text_sum,
            element_sum=element_sum,
            last=element.kind,
        )

    def batch(self) -> Batch:
        return Batch(
            text=bytes(self._text),
            lines=bytes(self._lines),
            lengths=self._now,
            text_marks=tuple(self._text_marks),
            element_marks=tuple(self._element_marks),
            pages=tuple(self._pages),
        )


def _writable(element: Element) -> Element:
    """An element that UTF-8 can hold. Half a character becomes a question mark, so that no count changes."""
    cells = tuple([tuple([_as_utf8(cell) for cell in row]) for row in element.rows])
    text = _as_utf8(element.text)
    return element if text is element.text and cells == element.rows else replace(element, text=text, rows=cells)


def _as_utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _slices(text: str) -> Iterator[str]:
    for start in range(0, len(text), _SLICE_CHARACTERS):
        yield text[start : start + _SLICE_CHARACTERS]


def _blocks(
    marks: array[int], sums: array[int], last: tuple[int, int], first: int, after: int
) -> tuple[tuple[int, int], ...]:
    closed = zip(marks[first + 1 : after + 1], sums[first:after], strict=True)
    return (*closed, last)[: after - first]


def _numbers(now: Lengths) -> tuple[int, ...]:
    return now.characters, now.text_bytes, now.elements, now.element_bytes, now.text_sum, now.element_sum


def _lengths(row: Json) -> Lengths:
    *numbers, last = cast("list[Json]", row)
    return Lengths(**dict(zip(_LENGTHS, map(_number, numbers), strict=True)), last=cast("ElementKind | None", last))


def _marks(row: Json) -> array[int]:
    return array("Q", cast("list[int]", row))


def _maybe(value: Json) -> int | None:
    return None if value is None else _number(value)


def _number(value: Json) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is no number")
    return value
