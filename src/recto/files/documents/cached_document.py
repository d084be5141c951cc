"""A cached document. One task fills it; readers wait until their part is available."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from recto.conversation.document import Element, Excerpt, Extent, Selection
from recto.errors import FileRefused, StorageDown
from recto.files.documents.document_file import Column, DocumentFile
from recto.files.parsing.ports import DocumentStart, FoundElements

MISSING = "gone"
REST_UNREAD = "[the rest could not be read: {reason}]"
DAMAGED = "its cached text is damaged and was deleted; read it again"
# Errors from reading a damaged file.
DAMAGE = (ValueError, KeyError, TypeError, struct.error)
T = TypeVar("T")


class CachedDocument:
    """A document in a file. One task fills it: `start`, `add` for each batch, `finish`, or `fail` at any time."""

    def __init__(self) -> None:
        self.file: DocumentFile | None = None
        self.failure: Exception | None = None
        self.is_damaged = False
        self._extent = Extent()
        self._changed = asyncio.Condition()

    @property
    def extent(self) -> Extent:
        """The extent parsed so far."""
        return self._extent

    async def characters(self, start: int, count: int) -> Excerpt:
        """Return up to `count` characters from `start` on; empty past the end."""
        first = max(0, start)
        end = first + max(0, count)
        await self._wait(lambda: self._extent.characters >= end)
        return await self._excerpt(first, end)

    async def elements(self, start: int, count: int) -> Sequence[Element]:
        """Return up to `count` elements from `start` on, counted from 0 (D9)."""
        first = max(0, start)
        end = first + max(0, count)
        await self._wait(lambda: self._extent.elements >= end)
        return await self._elements(first, end)

    async def pages(self, first: int, last: int, start: int = 0, count: int | None = None) -> Excerpt:
        """Return the text of pages `first` to `last`, counted from 1; with `count`, a part of it from `start` on.

        The concatenated texts of all pages are the text of the document.
        """
        begin, end, length = await self._page_range("characters", (first, last), start, count)
        return replace(await self._excerpt(begin, end), length=length)

    async def page_elements(self, first: int, last: int, start: int, count: int) -> Selection:
        """Return up to `count` elements of these pages, from element `start` (counted from 0) on.

        The first page includes elements before it.
        """
        begin, end, length = await self._page_range("elements", (first, last), start, count)
        return Selection(elements=await self._elements(begin, end), extent=self._extent, length=length)

    async def whole(self) -> Extent:
        """Wait for the end of the document and return its extent."""
        await self._wait(lambda: False)
        return self._extent

    async def load(self, file: DocumentFile, extent: Extent) -> None:
        """Use a complete cached file."""
        self.file = file
        await self._set_extent(extent)

    async def start(self, start: DocumentStart, make_file: Callable[[], DocumentFile]) -> None:
        """Create the file. Called once the bytes are known to be a document."""

        def work() -> None:
            self.file = make_file()

        await run_to_end(work)
        await self._set_extent(replace(self._extent, unit=start.unit, page_count=start.page_count))

    async def add(self, batch: FoundElements) -> None:
        """Write a batch to the file, then wake readers."""
        if batch.elements and self.file:
            await run_to_end(partial(self.file.append, batch.elements))
        await self._set_extent(replace(self._extent, pages=max(batch.pages, self._extent.pages)))

    async def finish(self) -> None:
        """Mark the document as complete."""
        await self._set_extent(replace(self._extent, is_whole=True))

    async def fail(self, error: Exception) -> None:
        """End the document with a note that it is incomplete.

        If the document is empty or deleted, readers get the error instead.
        """
        is_gone = isinstance(error, FileRefused) and error.code == MISSING
        if self._extent.is_whole and not is_gone:
            return None
        if isinstance(error, FileRefused) and self._extent.elements and not is_gone:
            note = Element(kind="note", text=REST_UNREAD.format(reason=error))
            try:
                await self.add(FoundElements(elements=(note,)))
                return await self.finish()
            except OSError as write_error:
                error = write_error
        self.failure = StorageDown(problem=error.strerror or str(error)) if isinstance(error, OSError) else error
        return await self._set_extent(self._extent)

    async def _set_extent(self, extent: Extent) -> None:
        end = self.file.end if self.file else extent
        async with self._changed:
            self._extent = replace(extent, characters=end.characters, elements=end.elements)
            self._changed.notify_all()

    async def _wait(self, is_there: Callable[[], bool]) -> None:
        if not (is_there() or self._is_settled()):
            async with self._changed:
                await self._changed.wait_for(lambda: is_there() or self._is_settled())
        if self.failure is not None:
            # Several readers raise the same error object: remove the traceback of the previous one.
            raise self.failure.with_traceback(None)

    def _is_settled(self) -> bool:
        return self._extent.is_whole or self.failure is not None

    def _has_page(self, page: int) -> bool:
        if self.file is None:
            return False
        # A document without pages never has the requested page, so its readers must not wait.
        return self._extent.unit is None or self.file.last_page > page or self._extent.pages >= page

    async def _page_range(
        self, column: Column, pages: tuple[int, int], start: int, count: int | None
    ) -> tuple[int, int, int | None]:
        """Wait for a part of the pages.

        Return its range, and the length of all `pages`, or None while it is unknown.
        """

        def page_range() -> tuple[int, int]:
            return self.file.page_range(column, *pages) if self.file else (0, 0)

        def is_there() -> bool:
            begin, end = page_range()
            return self._has_page(pages[1]) or (count is not None and end - begin >= skipped + max(0, count))

        skipped = max(0, start)
        await self._wait(is_there)
        begin, end = page_range()
        length = end - begin if self._has_page(pages[1]) or self._is_settled() else None
        first = min(begin + skipped, end)
        return first, end if count is None else min(first + max(0, count), end), length

    async def _excerpt(self, start: int, end: int) -> Excerpt:
        first, last = (min(place, self._extent.characters) for place in (start, end))
        if first == last or self.file is None:
            return Excerpt(text="", start=first, extent=self._extent)
        return Excerpt(
            text=await self._read(partial(self.file.text, first, last)),
            start=first,
            extent=self._extent,
            first_page=self.file.page_at(first),
            last_page=self.file.page_at(last - 1),
        )

    async def _elements(self, start: int, end: int) -> Sequence[Element]:
        end = min(end, self._extent.elements)
        return await self._read(partial(self.file.elements, start, end)) if self.file and start < end else ()

    async def _read(self, read: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(read)
        except DAMAGE as error:
            self.is_damaged = True
            raise FileRefused(DAMAGED, code="damaged") from error
        except OSError as error:
            raise StorageDown(problem=error.strerror or str(error)) from error


async def run_to_end(work: Callable[[], T]) -> T:
    """Run disk work in a thread. Even a cancelled caller waits for its end, because a thread cannot be stopped."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
