"""The cache of documents: each is read once for its owner, and can be read while it is written. It parses nothing."""

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
from recto.conversation.attachment import Attachment
from recto.conversation.file_formats import format_of
from recto.errors import FileRefused
from recto.files.documents.cached_document import CachedDocument, to_the_end
from recto.files.documents.document_files import STAGED_SECONDS, DocumentFolder, DocumentKey, remove
from recto.files.parsing.ports import DocumentEnd, Failed, FoundElements, Frame, Opened, Task

LOGGER = logging.getLogger("recto.files")
STOPPED = "the server is stopping; ask again in a moment"
DELETED = "it was deleted; ask for it to be sent again"
CUT_OFF = "its reading ended before the document did; try once more"
# Somebody else may do better at once.
NOT_REMEMBERED = frozenset({"busy", "not_started"})
FAILURES_REMEMBERED = 256
# Blobs that are asked for in one go.
AT_ONCE = 500
TOUCHED_AFTER = timedelta(hours=1)


Pieces: TypeAlias = Callable[[], AsyncIterable[bytes]]
KnownBlobs: TypeAlias = Callable[[Sequence[str]], Awaitable[frozenset[str]]]


class Parsing(Protocol):
    """What reads documents, elsewhere and within limits."""

    def parse(self, owner: str, task: Task, pieces: AsyncIterable[bytes]) -> AsyncGenerator[Frame]:
        """What it finds, as it finds it. Raises FileRefused for what cannot be read."""
        ...


@dataclass(kw_only=True)
class _Coming:
    document: CachedDocument
    task: asyncio.Task[None]
    why_ended: FileRefused | None = None


@dataclass(frozen=True, kw_only=True)
class _Open:
    document: CachedDocument
    touched: datetime


@dataclass(frozen=True, kw_only=True)
class _Failed:
    document: CachedDocument
    until: datetime


class DocumentCache:
    """The documents of everybody. Each is read once for a user, however many threads ask."""

    def __init__(
        self,
        folder: Path,
        parsing: Parsing,
        settings: DocumentSettings | None = None,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._folder = DocumentFolder(folder)
        self._parsing = parsing
        self._settings = settings or DocumentSettings()
        self._clock = clock
        self._coming: dict[DocumentKey, _Coming] = {}
        self._open: OrderedDict[DocumentKey, _Open] = OrderedDict()
        self._failed: OrderedDict[DocumentKey, _Failed] = OrderedDict()
        self._forgetting: Counter[str] = Counter()
        self._is_closed = False

    async def open(self, attachment: Attachment, pieces: Pieces) -> CachedDocument:
        """A document that is there, or begins to be. `pieces` gives its bytes, if they are needed."""
        key, now = self._key(attachment), self._clock()
        self._check(key)
        while coming := self._coming.get(key):
            if not coming.document.is_damaged:
                return coming.document
            await asyncio.wait([coming.task])
            self._check(key)
        if (failed := self._failed.get(key)) and now < failed.until:
            return failed.document
        known = self._open.get(key)
        if known and not known.document.is_damaged:
            return await self._used(key, known, now)
        self._drop(key)
        document = CachedDocument()
        making = self._make(key, document, attachment.name, pieces, is_anew=known is not None)
        task = asyncio.create_task(making, name=f"read {key.path}")
        self._coming[key] = _Coming(document=document, task=task)
        return document

    async def forget(self, blobs: Sequence[str]) -> None:
        """Keep nothing of these bytes any more: they are deleted."""
        wanted = frozenset(blobs)
        self._forgetting.update(wanted)
        try:
            await self._end(lambda key: key.blob in wanted, FileRefused(DELETED, code="gone"))
            await asyncio.to_thread(self._folder.forget, wanted)
        finally:
            self._forgetting -= Counter(wanted)

    async def clean(self, known: KnownBlobs | None = None) -> int:
        """Remove what is too old or too much, what other versions of the parser made, and what killed processes left.

        `known` tells which blobs there still are: another server may have deleted some. Says how many it were.
        """
        lost = await self._lost(known) if known else []
        await self.forget(lost)
        now = self._clock()
        for key in [key for key, failed in self._failed.items() if now >= failed.until]:
            self._drop(key)
        documents = [entry.document for entry in (*self._coming.values(), *self._failed.values())]
        clean = partial(
            self._folder.clean,
            oldest=(now - timedelta(days=days)).timestamp() if (days := self._settings.kept_days) else 0.0,
            most_bytes=self._settings.kept_bytes or None,
            stale=now.timestamp() - STAGED_SECONDS,
            ours=frozenset([document.files.folder for document in documents if document.files]),
        )
        return len(lost) + await asyncio.to_thread(clean)

    async def _lost(self, known: KnownBlobs) -> list[str]:
        blobs = await asyncio.to_thread(self._folder.blobs)
        parts = [blobs[start : start + AT_ONCE] for start in range(0, len(blobs), AT_ONCE)]
        return [blob for part in parts for there in [await known(part)] for blob in part if blob not in there]

    async def close(self) -> None:
        """End what is being read. Who waits for it is refused."""
        self._is_closed = True
        await self._end(lambda _: True, FileRefused(STOPPED, code="busy"))

    def _check(self, key: DocumentKey) -> None:
        if self._is_closed:
            raise FileRefused(STOPPED, code="busy")
        if key.blob in self._forgetting:
            raise FileRefused(DELETED, code="gone")

    def _key(self, attachment: Attachment) -> DocumentKey:
        limits, ocr = self._settings.limits, self._settings.ocr
        return DocumentKey(
            owner=attachment.owner,
            blob=attachment.blob,
            sha256=attachment.sha256,
            format=format_of(attachment.mime_type, attachment.name),
            manner=f"{ocr} {limits.pages} {limits.characters} {limits.ocr_pages}",
        )

    async def _used(self, key: DocumentKey, known: _Open, now: datetime) -> CachedDocument:
        self._open.move_to_end(key)
        if now - known.touched >= TOUCHED_AFTER:
            self._open[key] = _Open(document=known.document, touched=now)
            await asyncio.to_thread(self._folder.touch, key, now.timestamp())
        return known.document

    async def _make(
        self, key: DocumentKey, document: CachedDocument, name: str, pieces: Pieces, *, is_anew: bool
    ) -> None:
        source = _DocumentBytes(pieces)
        try:
            if is_anew or not await self._find(key, document):
                await self._parse(key, document, name, source)
                if not await self._name(key, document):
                    return
            self._keep(key, document)
        except asyncio.CancelledError:
            await document.fail(self._coming[key].why_ended or FileRefused(STOPPED, code="busy"))
            _remove_staged(document)
            raise
        except Exception as error:
            # Whatever it is, those who wait must hear of it.
            await self._settle(key, document, source.failure or error, is_lasting=source.failure is None)
        finally:
            del self._coming[key]

    async def _find(self, key: DocumentKey, document: CachedDocument) -> bool:
        found = await asyncio.to_thread(self._folder.find, key)
        if found is None:
            return False
        await asyncio.to_thread(self._folder.touch, key, self._clock().timestamp())
        await document.take(*found)
        return True

    async def _parse(self, key: DocumentKey, document: CachedDocument, name: str, source: _DocumentBytes) -> None:
        settings = self._settings
        task = Task(format=key.format, name=name, limits=settings.limits, ocr=settings.ocr)
        async with (
            aclosing(source.pieces()) as pieces,
            aclosing(self._parsing.parse(key.owner, task, pieces)) as frames,
        ):
            async for frame in frames:
                match frame:
                    case Opened():
                        await document.open(frame, self._folder.begin)
                    case FoundElements():
                        await document.add(frame)
                    case Failed(code=code, reason=reason):
                        raise FileRefused(reason, code=code)
                    case DocumentEnd():
                        return await document.end()
        raise FileRefused(CUT_OFF, code="cut_off")

    async def _name(self, key: DocumentKey, document: CachedDocument) -> bool:
        """Keep a document that is read. Where that fails it is there all the same, for as long as it is open.

        False: somebody else deleted it meanwhile, and only who has it already reads it to its end.
        """
        if document.files is None:
            return True
        now, is_named = self._clock().timestamp(), list[bool]()
        try:
            # Who forgets it waits for this too: it must not get its name after that.
            await to_the_end(partial(self._folder.name, key, document.files, document.index(), now), is_named.append)
        except OSError as error:
            LOGGER.warning("a document could not be kept: %s", error.strerror)
        if is_named != [True]:
            _remove_staged(document)
        return is_named != [False]

    def _keep(self, key: DocumentKey, document: CachedDocument) -> None:
        self._open[key] = _Open(document=document, touched=self._clock())
        while len(self._open) > self._settings.open_documents:
            self._open.popitem(last=False)

    async def _settle(self, key: DocumentKey, document: CachedDocument, error: Exception, *, is_lasting: bool) -> None:
        await document.fail(error)
        is_remembered = is_lasting and isinstance(error, FileRefused) and error.code not in NOT_REMEMBERED
        if not is_remembered:
            if not isinstance(error, FileRefused):
                LOGGER.warning("a document could not be read: %s", type(error).__name__, exc_info=error)
            _remove_staged(document)
            return
        if document.failure is not None:
            _remove_staged(document)
        until = self._clock() + timedelta(seconds=self._settings.failures_seconds)
        self._failed[key] = _Failed(document=document, until=until)
        while len(self._failed) > FAILURES_REMEMBERED:
            self._drop(next(iter(self._failed)))

    async def _end(self, is_meant: Callable[[DocumentKey], bool], why: FileRefused) -> None:
        ending = {key: coming for key, coming in self._coming.items() if is_meant(key)}
        for coming in ending.values():
            # One that is ended already has to tell its readers: ended twice, it could not.
            if coming.why_ended is None:
                coming.why_ended = why
                coming.task.cancel()
        if ending:
            await asyncio.wait([coming.task for coming in ending.values()])
        for key, coming in ending.items():
            # One that was ended before it began could say nothing itself.
            if self._coming.get(key) is coming:
                del self._coming[key]
                await coming.document.fail(why)
        for key in [key for key in (*self._open, *self._failed) if is_meant(key)]:
            self._drop(key)

    def _drop(self, key: DocumentKey) -> None:
        self._open.pop(key, None)
        if failed := self._failed.pop(key, None):
            _remove_staged(failed.document)


def _remove_staged(document: CachedDocument) -> None:
    # Three files at most: in a thread it would take longer.
    if document.files:
        remove(document.files.folder)


class _DocumentBytes:
    """The bytes of a document, and what went wrong with them: that is no fault of the document."""

    def __init__(self, make: Pieces) -> None:
        self._make = make
        self.failure: Exception | None = None

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The bytes, once."""
        made = self._make()
        try:
            async for piece in made:
                yield piece
        except Exception as error:
            self.failure = error
            raise
        finally:
            if isinstance(made, AsyncGenerator):
                await made.aclose()
