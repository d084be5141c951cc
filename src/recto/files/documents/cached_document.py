"""One document of the cache, which is being read or was: readers wait for the part they want. It parses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import orjson

from recto.conversation.document import Element, Excerpt, Extent, Selection, element_from
from recto.errors import FileRefused, StorageDown
from recto.files.documents.document_files import DocumentFiles
from recto.files.documents.document_index import Batch, Index, Lengths, Reach, set_elements
from recto.files.parsing.ports import FoundElements, Opened

GONE = "gone"
REST_UNREAD = "[the rest could not be read: {reason}]"
DAMAGED = "what was kept of it is damaged and was thrown away; read it once more"
T = TypeVar("T")


class CachedDocument:
    """A document whose text and elements are in files, and only the places of their parts in memory.

    It is filled by one task: `open`, `add` as often as there is more, then `end`, or `fail` at any time. One that was
    in the cache is filled by `take`.
    """

    def __init__(self) -> None:
        self.files: DocumentFiles | None = None
        self.is_damaged = False
        self._index = Index()
        self._extent = Extent()
        self._is_open = False
        self._failure: Exception | None = None
        self._changed = asyncio.Condition()

    # For readers

    @property
    def extent(self) -> Extent:
        """How much is read by now."""
        return self._extent

    async def characters(self, start: int, count: int) -> Excerpt:
        """The text from a character on: up to `count` of them. From the end on there are none."""
        first = max(0, start)
        end = first + max(0, count)
        await self._until(lambda: self._extent.characters >= end)
        return await self._excerpt(first, end)

    async def pages(self, first: int, last: int, start: int = 0, count: int | None = None) -> Excerpt:
        """The text of these pages, slides or sheets, counted from 1. Those it does not have are left out.

        The parts of all pages, one after another, are the text. With a `count`, it is up to so many characters of it
        from the one at `start` on, and no more is waited for.
        """
        skipped = max(0, start)
        end = None if count is None else skipped + max(0, count)

        def reach() -> tuple[int, int]:
            return self._index.pages_reach(first, last)

        length = await self._until_on_pages(last, end, reach)
        begin, stop = reach()
        excerpt = await self._excerpt(min(begin + skipped, stop), stop if end is None else min(begin + end, stop))
        return replace(excerpt, length=length)

    async def elements(self, start: int, count: int) -> Sequence[Element]:
        """What it is made of: up to `count` elements from the one at `start` on, counted from 0 (D9)."""
        first = max(0, start)
        end = first + max(0, count)
        await self._until(lambda: self._extent.elements >= end)
        return await self._elements(first, end)

    async def page_elements(self, first: int, last: int, start: int, count: int) -> Selection:
        """The same of these pages, whose elements are counted from 0. What stands before the first page is its own."""
        skipped = max(0, start)
        end = skipped + max(0, count)

        def reach() -> tuple[int, int]:
            return self._index.page_elements_reach(first, last)

        length = await self._until_on_pages(last, end, reach)
        begin, stop = reach()
        elements = await self._elements(begin + skipped, min(begin + end, stop))
        return Selection(elements=elements, extent=self._extent, length=length)

    async def whole(self) -> Extent:
        """How much there is of it, once it is read to its end."""
        await self._until(lambda: False)
        return self._extent

    def _has_page(self, page: int) -> bool:
        if self._is_open and self._extent.unit is None:
            return True
        return self._index.last_page > page or self._extent.pages >= page

    def _is_settled(self) -> bool:
        return self._extent.is_whole or self._failure is not None

    async def _until(self, is_there: Callable[[], bool]) -> None:
        if not (is_there() or self._is_settled()):
            async with self._changed:
                await self._changed.wait_for(lambda: is_there() or self._is_settled())
        if self._failure is not None:
            # Many may get it, each from where it is.
            raise self._failure.with_traceback(None)

    async def _until_on_pages(self, last: int, end: int | None, reach: Callable[[], tuple[int, int]]) -> int | None:
        """Wait for as much of some pages, or for all of them. Then it is known how much that is."""

        def length() -> int:
            begin, stop = reach()
            return stop - begin

        await self._until(lambda: self._has_page(last) or (end is not None and length() >= end))
        return length() if self._has_page(last) or self._is_settled() else None

    async def _elements(self, first: int, end: int) -> tuple[Element, ...]:
        end = min(end, self._index.lengths.elements)
        if first >= end or self.files is None:
            return ()
        reach, file = self._index.elements_reach(first, end), self.files.elements
        return await self._read(lambda: _elements(file.read(reach.start, reach.end), reach, end - first))

    async def _excerpt(self, start: int, end: int) -> Excerpt:
        # What is written down is in the index a little before it is in the extent.
        written = self._index.lengths.characters
        first, last = min(start, written), min(end, written)
        text = ""
        if first < last and self.files is not None:
            reach, file = self._index.text_reach(first, last), self.files.text
            text = await self._read(
                lambda: _text(file.read(reach.start, reach.end), reach, last - first),
                lambda: _text_now(file.read_now(reach.start, reach.end), reach, last - first),
            )
        return Excerpt(
            text=text,
            start=first,
            extent=self._extent,
            first_page=self._index.page_at(first) if text else None,
            last_page=self._index.page_at(last - 1) if text else None,
        )

    async def _read(self, read: Callable[[], T], read_now: Callable[[], T | None] = lambda: None) -> T:
        try:
            now = read_now()
            return now if now is not None else await asyncio.to_thread(read)
        except (ValueError, KeyError, TypeError) as error:
            self.is_damaged = True
            raise FileRefused(DAMAGED, code="damaged") from error
        except OSError as error:
            raise StorageDown(problem=error.strerror or str(error)) from error

    # For the one who reads it in

    @property
    def found_any(self) -> bool:
        """Whether anything of it is there."""
        return self._extent.elements > 0

    @property
    def failure(self) -> Exception | None:
        """Why nothing of it can be read."""
        return self._failure

    def index(self) -> bytes:
        """Its index, as its file has it."""
        return self._index.dump(self._extent)

    async def take(self, files: DocumentFiles, index: Index, extent: Extent) -> None:
        """Be one that was in the cache."""
        self.files, self._index = files, index
        await self._grow(extent)

    async def open(self, opened: Opened, begin: Callable[[], DocumentFiles]) -> None:
        """It is a document, and gets files."""
        await to_the_end(begin, self._begin)
        self._is_open = True
        await self._grow(replace(self._extent, unit=opened.unit, page_count=opened.page_count))

    async def add(self, found: FoundElements) -> None:
        """Write down more of it; then readers have it. `files` are there by now."""
        if found.elements and self.files is not None:
            files, lengths, page = self.files, self._index.lengths, self._index.last_page
            await to_the_end(lambda: _write(files, found.elements, lengths, page), self._index.add)
        await self._grow(self._index.measured(replace(self._extent, pages=max(found.pages, self._extent.pages))))

    async def end(self) -> None:
        """It is read to its end."""
        await self._grow(replace(self._extent, is_whole=True))

    async def fail(self, failure: Exception) -> None:
        """It cannot be read, or not on from here: then what came is all there is, and says so."""
        why = failure
        # Of a file that was deleted nothing may be shown any more, whatever came.
        if isinstance(failure, FileRefused) and failure.code != GONE and self.found_any:
            try:
                await self.add(FoundElements(elements=(Element(kind="note", text=REST_UNREAD.format(reason=failure)),)))
            except OSError as error:
                why = error
            else:
                return await self.end()
        self._failure = StorageDown(problem=why.strerror or str(why)) if isinstance(why, OSError) else why
        await self._grow(self._extent)
        return None

    def _begin(self, files: DocumentFiles) -> None:
        self.files = files

    async def _grow(self, extent: Extent) -> None:
        async with self._changed:
            self._extent = extent
            self._changed.notify_all()


async def to_the_end(work: Callable[[], T], done: Callable[[T], None]) -> None:
    """Work on the disk in a thread, and take what it made. Who is cancelled meanwhile waits for it all the same.

    A thread cannot be stopped: left alone, it would write when others believe it gone.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        if working.exception() is None:
            done(working.result())
        raise
    done(working.result())


def _write(files: DocumentFiles, elements: Sequence[Element], lengths: Lengths, page: int) -> Batch:
    batch = set_elements(elements, lengths, page)
    files.elements.add(batch.lines)
    files.text.add(batch.text)
    return batch


def _text_now(data: bytes | None, reach: Reach, count: int) -> str | None:
    return None if data is None else _text(data, reach, count)


def _text(data: bytes, reach: Reach, count: int) -> str:
    return reach.checked(data).decode()[reach.skipped : reach.skipped + count]


def _elements(data: bytes, reach: Reach, count: int) -> tuple[Element, ...]:
    lines = reach.checked(data).split(b"\n")[reach.skipped : reach.skipped + count]
    return tuple([element_from(orjson.loads(line)) for line in lines])
