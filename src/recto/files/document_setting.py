"""Elements as the files of a kept document get them: their bytes, and the marks that fall on them. Writes nothing."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson

from recto.files.document_index import MARK_BYTES, Batch, Lengths
from recto.page.document import Element, element_row, joint

_SLICE_CHARACTERS = MARK_BYTES // 4


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
