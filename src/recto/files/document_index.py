"""Where in its files each part of a kept document is: characters, pages and elements. Opens nothing.

Positions are kept at marks some way apart; what lies between two is read whole and counted.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast, get_args

import orjson

from recto.page.canonical import Json
from recto.page.document import Element, ElementKind, Extent, Unit, element_row, joint

# A character has at most four bytes, so that no two marks of the text are farther apart than twice MARK_BYTES.
MARK_BYTES = 2**14
_SLICE_CHARACTERS = MARK_BYTES // 4
MARK_ELEMENTS = 64
# Of another layout, what is kept is made anew.
LAYOUT = 1


class Reach(NamedTuple):
    """Bytes of a file that hold what is wanted: from `start` up to `end`, of which the first `skipped` are not it."""

    start: int
    end: int
    skipped: int


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """How long the text and the elements of a document are: in characters and bytes, in number and bytes.

    `last` is the kind of the last element, which says what stands between it and the next.
    """

    characters: int = 0
    text_bytes: int = 0
    elements: int = 0
    element_bytes: int = 0
    last: ElementKind | None = None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """More elements, set in the bytes that go into the files, with the marks that fall on them."""

    text: bytes
    lines: bytes
    lengths: Lengths
    text_marks: tuple[tuple[int, int], ...]
    element_marks: tuple[int, ...]
    pages: tuple[tuple[int, int], ...]


class Index:
    """The marks of one document. It grows by batches, in order."""

    def __init__(self) -> None:
        self.lengths = Lengths()
        self._characters = array("Q", [0])
        self._bytes = array("Q", [0])
        self._elements = array("Q", [0])
        self._pages = array("Q")
        self._page_starts = array("Q")

    def add(self, batch: Batch) -> None:
        """Take up what was written."""
        for characters, bytes in batch.text_marks:
            self._characters.append(characters)
            self._bytes.append(bytes)
        self._elements.extend(batch.element_marks)
        for page, start in batch.pages:
            # A number that does not rise names no page of its own.
            if not self._pages or page > self._pages[-1]:
                self._pages.append(page)
                self._page_starts.append(start)
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
        end_of_text = self.lengths.characters
        if not self._pages or first > last or first > self._pages[-1]:
            return end_of_text, end_of_text
        begin, end = bisect_left(self._pages, first), bisect_right(self._pages, last)
        start = self._page_starts[begin] if begin else 0
        stop = self._page_starts[end] if end < len(self._pages) else end_of_text
        return (start, stop) if end else (stop, stop)

    def text_reach(self, start: int, end: int) -> Reach:
        """The bytes that hold the characters from `start` up to `end`; `skipped` counts characters."""
        first = bisect_right(self._characters, start) - 1
        after = bisect_left(self._characters, end)
        stop = self._bytes[after] if after < len(self._bytes) else self.lengths.text_bytes
        return Reach(self._bytes[first], stop, start - self._characters[first])

    def elements_reach(self, start: int, end: int) -> Reach:
        """The bytes that hold the elements from `start` up to `end`; `skipped` counts elements."""
        first, after = start // MARK_ELEMENTS, -(-end // MARK_ELEMENTS)
        stop = self._elements[after] if after < len(self._elements) else self.lengths.element_bytes
        return Reach(self._elements[first], stop, start - first * MARK_ELEMENTS)

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
            "pages": self._pages.tolist(),
            "page_starts": self._page_starts.tolist(),
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
        index._elements = _marks(row["elements"])
        index._pages, index._page_starts = _marks(row["pages"]), _marks(row["page_starts"])
        index.lengths = _lengths(row["lengths"])
        unit = next((known for known in get_args(Unit) if known == row["unit"]), None)
        extent = Extent(unit=unit, pages=_number(row["read"]), page_count=_maybe(row["page_count"]), is_whole=True)
        return index, index.measured(extent)

    def measured(self, extent: Extent) -> Extent:
        """An extent with the lengths of now."""
        return replace(extent, characters=self.lengths.characters, elements=self.lengths.elements)


def set_elements(elements: Sequence[Element], lengths: Lengths, last_page: int) -> Batch:
    """Elements as the files of a document get them, which is so long by now and is on this page."""
    setting = _Setting(lengths, last_page)
    for element in elements:
        setting.add(_writable(element))
    return setting.batch()


class _Setting:
    def __init__(self, lengths: Lengths, last_page: int) -> None:
        self._now = lengths
        self._page = last_page
        self._text, self._lines = bytearray(), bytearray()
        self._text_marks: list[tuple[int, int]] = []
        self._element_marks: list[int] = []
        self._pages: list[tuple[int, int]] = []

    def add(self, element: Element) -> None:
        now = self._now
        if now.elements and now.elements % MARK_ELEMENTS == 0:
            self._element_marks.append(now.element_bytes)
        if element.kind == "page":
            self._page = element.page or self._page + 1
            self._pages.append((self._page, now.characters))
        line = orjson.dumps(element_row(element)) + b"\n"
        self._lines += line
        characters, text_bytes = now.characters, now.text_bytes
        for piece in _slices(joint(now.last, element.kind) + element.text):
            bytes = piece.encode()
            self._text += bytes
            characters += len(piece)
            if (text_bytes + len(bytes)) // MARK_BYTES > text_bytes // MARK_BYTES:
                self._text_marks.append((characters, text_bytes + len(bytes)))
            text_bytes += len(bytes)
        self._now = Lengths(
            characters=characters,
            text_bytes=text_bytes,
            elements=now.elements + 1,
            element_bytes=now.element_bytes + len(line),
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


def _numbers(lengths: Lengths) -> tuple[int, ...]:
    return lengths.characters, lengths.text_bytes, lengths.elements, lengths.element_bytes


def _lengths(row: Json) -> Lengths:
    *numbers, last = cast("list[Json]", row)
    characters, text_bytes, elements, element_bytes = map(_number, numbers)
    return Lengths(
        characters=characters,
        text_bytes=text_bytes,
        elements=elements,
        element_bytes=element_bytes,
        last=cast("ElementKind | None", last),
    )


def _marks(row: Json) -> array[int]:
    return array("Q", cast("list[int]", row))


def _maybe(value: Json) -> int | None:
    return None if value is None else _number(value)


def _number(value: Json) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is no number")
    return value
