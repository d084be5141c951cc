"""The file of a cached document: a JSON line for each element, then an index of blocks and pages."""

from __future__ import annotations

import os
import stat
import struct
import threading
import weakref
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypedDict

import orjson

from recto.conversation.document import Element, ElementKind, Extent, Unit, element_from, element_row, joint
from recto.conversation.json import Json, dump
from recto.files.storage.staged_file import PRIVATE, Disk

# Version of the file layout. It is part of the file name, so that files of another layout are never read.
LAYOUT = 3
# Size at which a block ends. A read covers whole blocks, so this limits the bytes read in addition to the wanted lines.
BLOCK_BYTES = 2**15
_BINARY = getattr(os, "O_BINARY", 0)
# Do not follow a link or block on a pipe, in case something has replaced the file.
_READ_FLAGS = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY
# Footer of the file: start and checksum of the index.
_FOOTER = struct.Struct("<QI")

Column: TypeAlias = Literal["characters", "elements"]
# A line of the file: the text between the previous element and this one, and this element.
IndexLine: TypeAlias = tuple[str, dict[str, Json]]


class ElementBlock(NamedTuple):
    """The end of a block of lines: bytes, characters and elements up to it, and the checksum of the block."""

    bytes: int
    characters: int
    elements: int
    checksum: int


class PageStart(NamedTuple):
    """The characters and elements before a page."""

    page: int
    characters: int
    elements: int


class _IndexRow(TypedDict):
    blocks: list[list[int]]
    page_starts: list[list[int]]
    unit: Unit | None
    pages: int
    page_count: int | None


_START = ElementBlock(0, 0, 0, 0)


class DocumentFile:
    """An open file of elements and its index. One thread appends while others read.

    The file closes when this object is garbage-collected. Until then it is readable, even after its deletion.
    """

    def __init__(self, path: Path, flags: int = _WRITE_FLAGS) -> None:
        self.path = path
        self._file = os.open(path, flags, PRIVATE)
        weakref.finalize(self, os.close, self._file)
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise ValueError(f"{path.name} is not a regular file")
        self.bytes_read = 0
        self._lock = threading.Lock()
        self._blocks: list[ElementBlock] = []
        self._page_starts: list[PageStart] = []
        self._last_kind: ElementKind | None = None

    @classmethod
    def load(cls, path: Path) -> tuple[DocumentFile, Extent]:
        """Open a complete file. Raise OSError, ValueError, KeyError, TypeError or struct.error for any other."""
        document = cls(path, _READ_FLAGS)
        index_end = os.fstat(document._file).st_size - _FOOTER.size
        start, checksum = _FOOTER.unpack(document._read(index_end, index_end + _FOOTER.size))
        body = document._read(start, index_end)
        if zlib.crc32(body) != checksum:
            raise ValueError(f"the index of {path.name} is damaged")
        index: _IndexRow = orjson.loads(body)
        document._blocks = [ElementBlock(*row) for row in index["blocks"]]
        document._page_starts = [PageStart(*row) for row in index["page_starts"]]
        extent = Extent(unit=index["unit"], pages=index["pages"], page_count=index["page_count"], is_whole=True)
        return document, extent

    @property
    def end(self) -> ElementBlock:
        """The end of the last block."""
        return self._blocks[-1] if self._blocks else _START

    @property
    def last_page(self) -> int:
        """The number of the last page; 0 before the first."""
        return self._page_starts[-1].page if self._page_starts else 0

    def append(self, elements: Iterable[Element]) -> None:
        """Append elements. Readers see a line only after it is in the file."""
        position, lines = self.end.bytes, bytearray()
        blocks, page_starts = self._blocks[-2:], list[PageStart]()
        for element in elements:
            end = blocks[-1] if blocks else _START
            if element.kind == "page":
                last = page_starts[-1].page if page_starts else self.last_page
                page = element.page or last + 1
                # Ignore a page number that does not rise.
                page_starts += [PageStart(page, end.characters, end.elements)] if page > last else []
            space = joint(self._last_kind, element.kind)
            line = dump([space, element_row(element)]) + b"\n"
            lines += line
            checksum = 0
            if blocks and end.bytes - (blocks[-2].bytes if len(blocks) > 1 else 0) < BLOCK_BYTES:
                checksum = blocks.pop().checksum
            characters = end.characters + len(space) + len(element.text)
            blocks.append(ElementBlock(end.bytes + len(line), characters, end.elements + 1, zlib.crc32(line, checksum)))
            self._last_kind = element.kind
        self._write(position, lines)
        self._blocks[-2:] = blocks
        self._page_starts += page_starts

    def finish(self, extent: Extent, disk: Disk) -> None:
        """Write the index and sync the file."""
        index: _IndexRow = {
            "blocks": list(map(list, self._blocks)),
            "page_starts": list(map(list, self._page_starts)),
            "unit": extent.unit,
            "pages": extent.pages,
            "page_count": extent.page_count,
        }
        body = orjson.dumps(index)
        self._write(self.end.bytes, body + _FOOTER.pack(self.end.bytes, zlib.crc32(body)))
        disk.keep(self._file)

    def text(self, start: int, end: int) -> str:
        """Return the text from character `start` up to but not including `end`.

        Raise ValueError if the file is damaged.
        """
        first, lines = self._lines("characters", start, end)
        return "".join([space + str(row["text"]) for space, row in lines])[start - first : end - first]

    def elements(self, start: int, end: int) -> tuple[Element, ...]:
        """Return the elements from `start` up to but not including `end`. Raise ValueError if the file is damaged."""
        first, lines = self._lines("elements", start, end)
        return tuple([element_from(row) for _, row in lines[start - first : end - first]])

    def page_at(self, character: int) -> int | None:
        """Return the page that contains a character; None before the first page."""
        count = bisect_right(self._page_starts, character, key=attrgetter("characters"))
        return self._page_starts[count - 1].page if count else None

    def page_range(self, column: Column, first: int, last: int) -> tuple[int, int]:
        """Return the range of characters or elements of some pages; an empty range if none of them is parsed yet.

        The first page includes the text before it. Every page includes the blank line before its first element.
        """
        starts, total = self._page_starts, int(getattr(self.end, column))
        begin = bisect_left(starts, first, key=attrgetter("page"))
        after = bisect_right(starts, last, key=attrgetter("page"))
        if first > last or begin == len(starts) or not after:
            return total, total
        stop = getattr(starts[after], column) if after < len(starts) else total
        return getattr(starts[begin], column) if begin else 0, stop

    def _lines(self, column: Column, start: int, end: int) -> tuple[int, list[IndexLine]]:
        """Return the position of the first line, and all lines, of the blocks that overlap a range."""
        blocks = self._blocks.copy()
        low = bisect_right(blocks, start, key=attrgetter(column))
        high = bisect_left(blocks, end, key=attrgetter(column))
        before = blocks[low - 1] if low else _START
        data = self._read(before.bytes, blocks[min(high, len(blocks) - 1)].bytes)
        position = 0
        for block in blocks[low : high + 1]:
            stop = block.bytes - before.bytes
            if zlib.crc32(memoryview(data)[position:stop]) != block.checksum:
                raise ValueError(f"{self.path.name} is damaged before byte {block.bytes}")
            position = stop
        return getattr(before, column), [orjson.loads(line) for line in data.splitlines()]

    def _read(self, start: int, end: int) -> bytes:
        data = bytearray()
        with self._lock:
            os.lseek(self._file, start, os.SEEK_SET)
            while len(data) < end - start and (piece := os.read(self._file, end - start - len(data))):
                data += piece
        if len(data) != end - start:
            raise ValueError(f"{self.path.name} ends before byte {end}")
        self.bytes_read += len(data)
        return bytes(data)

    def _write(self, position: int, data: bytes | bytearray) -> None:
        # Seek first, to overwrite the bytes of an append that failed.
        rest = memoryview(data)
        with self._lock:
            os.lseek(self._file, position, os.SEEK_SET)
            while rest:
                rest = rest[os.write(self._file, rest) :]
