"""The cache of parsed documents. A document is parsed once per owner and can be read while it is parsed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from recto.config.file_settings import DocumentSettings
from recto.conversation.file_formats import format_of
from recto.conversation.message_files import Attachment
from recto.errors import FileRefused
from recto.files.documents.cached_document import MISSING, CachedDocument, run_to_end
from recto.files.documents.document_folder import STAGED_SECONDS, DocumentFolder, DocumentKey, remove
from recto.files.parsing.ports import DocumentEnd, DocumentStart, Failed, FoundElements, Frame, Task

LOGGER = logging.getLogger("recto.files")
STOPPED = "the server is stopping; ask again in a moment"
DELETED = "it was deleted; ask for it to be sent again"
CUT_OFF = "its reading ended before the document did; try once more"
# Codes of server failures. They are not cached, because a second attempt may succeed.
NOT_REMEMBERED = frozenset({"busy", "not_started"})
FAILURES_REMEMBERED = 256
BLOBS_PER_QUERY = 500

Pieces: TypeAlias = Callable[[], AsyncIterable[bytes]]
KnownBlobs: TypeAlias = Callable[[Sequence[str]], Awaitable[frozenset[str]]]


class Parsing(Protocol):
    """A parser of documents within limits."""

    def parse(self, owner: str, task: Task, pieces: AsyncIterable[bytes]) -> AsyncGenerator[Frame]:
        """Yield frames as soon as they are parsed. Raise FileRefused for a file that cannot be read."""
        ...


@dataclass(kw_only=True)
class _Reading:
    document: CachedDocument
    task: asyncio.Task[None]
    cancel_reason: FileRefused | None = None


class _SourceError(Exception):
    """The bytes of a document could not be read from their source. The document itself may be valid."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class DocumentCache:
    """The parsed documents of all users. All threads of a user share a parsed document."""

    def __init__(
        self, folder: Path, parsing: Parsing, settings: DocumentSettings | None = None, *, clock: Callable[[], datetime]
    ) -> None:
        self._folder = DocumentFolder(folder)
        self._parsing = parsing
        self._settings = settings or DocumentSettings()
        self._clock = clock
        self._readings: dict[DocumentKey, _Reading] = {}
        self._open: OrderedDict[DocumentKey, CachedDocument] = OrderedDict()
        # Documents that could not be parsed, each with the time until which it is not parsed again.
        self._failed: OrderedDict[DocumentKey, tuple[CachedDocument, datetime]] = OrderedDict()
        self._forgetting: Counter[str] = Counter()
        self._is_closed = False

    async def open(self, attachment: Attachment, pieces: Pieces) -> CachedDocument:
        """Return a document. If it is not cached, start to parse it; `pieces` returns its bytes."""
        limits, ocr = self._settings.limits, self._settings.ocr
        key = DocumentKey(
            owner=attachment.owner,
            blob=attachment.blob,
            sha256=attachment.sha256,
            format=format_of(attachment.mime_type, attachment.name),
            options=f"{ocr} {limits.pages} {limits.characters} {limits.ocr_pages}",
        )
        self._check(key)
        while reading := self._readings.get(key):
            if not reading.document.is_damaged:
                return reading.document
            await asyncio.wait([reading.task])
            self._check(key)
        if (failure := self._failed.get(key)) and self._clock() < failure[1]:
            return failure[0]
        cached = self._open.get(key)
        if cached and not cached.is_damaged:
            self._open.move_to_end(key)
            self._folder.touch(key, self._clock().timestamp())
            return cached
        self._drop(key)
        document = CachedDocument()
        work = self._read(key, document, attachment.name, pieces, is_damaged=cached is not None)
        self._readings[key] = _Reading(document=document, task=asyncio.create_task(work, name=f"read {key.path}"))
        return document

    async def forget(self, blobs: Sequence[str]) -> None:
        """Delete the documents of deleted blobs."""
        names = frozenset(blobs)
        self._forgetting.update(names)
        try:
            await self._cancel(lambda key: key.blob in names, FileRefused(DELETED, code=MISSING))
            await asyncio.to_thread(self._folder.forget, names)
        finally:
            self._forgetting -= Counter(names)

    async def clean(self, find_existing: KnownBlobs | None = None) -> int:
        """Delete old, excess and outdated documents and leftovers. Return the number of deletions.

        `find_existing` returns the blobs that still exist: another server may have deleted some.
        """
        blobs = await asyncio.to_thread(self._folder.blobs) if find_existing else []
        deleted = set[str]()
        for start in range(0, len(blobs), BLOBS_PER_QUERY):
            part = blobs[start : start + BLOBS_PER_QUERY]
            deleted |= {*part} - (await find_existing(part) if find_existing else frozenset())
        await self.forget(list(deleted))
        now = self._clock()
        for key in [key for key, (_, until) in self._failed.items() if now >= until]:
            self._drop(key)
        clean = partial(
            self._folder.clean,
            oldest=(now - timedelta(days=days)).timestamp() if (days := self._settings.kept_days) else 0.0,
            most_bytes=self._settings.kept_bytes or None,
            stale=now.timestamp() - STAGED_SECONDS,
            staged=frozenset([file.path for one in self._readings.values() if (file := one.document.file)]),
        )
        return len(deleted) + await asyncio.to_thread(clean)

    async def close(self) -> None:
        """Stop parsing. Waiting readers get an error."""
        self._is_closed = True
        await self._cancel(lambda _: True, FileRefused(STOPPED, code="busy"))

    def _check(self, key: DocumentKey) -> None:
        if self._is_closed:
            raise FileRefused(STOPPED, code="busy")
        if key.blob in self._forgetting:
            raise FileRefused(DELETED, code=MISSING)

    async def _read(
        self, key: DocumentKey, document: CachedDocument, name: str, pieces: Pieces, *, is_damaged: bool
    ) -> None:
        """Fill a document: load it from its file, or parse and store it."""
        try:
            cached = None if is_damaged else await asyncio.to_thread(self._folder.find, key)
            if cached:
                self._folder.touch(key, self._clock().timestamp())
                await document.load(*cached)
            else:
                await self._parse(key, document, name, pieces)
            if cached or await self._keep(key, document):
                self._open[key] = document
                while len(self._open) > self._settings.open_documents:
                    self._open.popitem(last=False)
        except asyncio.CancelledError:
            await _fail(document, self._readings[key].cancel_reason or FileRefused(STOPPED, code="busy"))
            raise
        except Exception as error:
            # Pass any error to the waiting readers, which would otherwise wait forever.
            cause = error.error if isinstance(error, _SourceError) else error
            await _fail(document, cause)
            if not isinstance(cause, FileRefused):
                LOGGER.warning("A document could not be read: %s", type(cause).__name__, exc_info=cause)
            elif cause is error and cause.code not in NOT_REMEMBERED:
                self._failed[key] = document, self._clock() + timedelta(seconds=self._settings.failures_seconds)
                while len(self._failed) > FAILURES_REMEMBERED:
                    self._failed.popitem(last=False)
        finally:
            del self._readings[key]

    async def _parse(self, key: DocumentKey, document: CachedDocument, name: str, pieces: Pieces) -> None:
        settings = self._settings
        task = Task(format=key.format, name=name, limits=settings.limits, ocr=settings.ocr)
        async with (
            aclosing(_wrap_errors(pieces())) as source,
            aclosing(self._parsing.parse(key.owner, task, source)) as frames,
        ):
            async for frame in frames:
                match frame:
                    case DocumentStart():
                        await document.start(frame, partial(self._folder.stage, key))
                    case FoundElements():
                        await document.add(frame)
                    case Failed(code=code, reason=reason):
                        raise FileRefused(reason, code=code)
                    case DocumentEnd():
                        return await document.finish()
        raise FileRefused(CUT_OFF, code="cut_off")

    async def _keep(self, key: DocumentKey, document: CachedDocument) -> bool:
        """Store a complete document under its final name. Return False if its blob was deleted meanwhile.

        If the disk fails, the document is readable only while it is open.
        """
        if document.file is None:
            return True
        now = self._clock().timestamp()
        try:
            # Run to the end even if cancelled: `forget` must not miss a file that is about to be renamed.
            return await run_to_end(partial(self._folder.keep, key, document.file, document.extent, now))
        except OSError as error:
            LOGGER.warning("A parsed document could not be stored, so it will be parsed again: %s", error.strerror)
            remove(document.file.path)
            return True

    async def _cancel(self, is_included: Callable[[DocumentKey], bool], reason: FileRefused) -> None:
        readings = {key: reading for key, reading in self._readings.items() if is_included(key)}
        for reading in readings.values():
            # Cancel each task only once: a second cancellation would interrupt its notification of readers.
            if reading.cancel_reason is None:
                reading.cancel_reason = reason
                reading.task.cancel()
        if readings:
            await asyncio.wait([reading.task for reading in readings.values()])
        for key, reading in readings.items():
            # A task that was cancelled before it started has not notified its readers.
            if self._readings.get(key) is reading:
                del self._readings[key]
                await reading.document.fail(reason)
        for key in [key for key in (*self._open, *self._failed) if is_included(key)]:
            self._drop(key)

    def _drop(self, key: DocumentKey) -> None:
        self._open.pop(key, None)
        self._failed.pop(key, None)


async def _fail(document: CachedDocument, error: Exception) -> None:
    await document.fail(error)
    if document.file:
        # Readers of the parsed beginning can continue, because the file is still open.
        remove(document.file.path)


async def _wrap_errors(pieces: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    try:
        async for piece in pieces:
            yield piece
    except Exception as error:
        raise _SourceError(error) from error
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
