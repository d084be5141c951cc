"""Attachments: receiving, finding, reading and deleting uploaded files."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from recto.agents.file_input import FileInput
from recto.config.file_settings import FileSettings
from recto.conversation.file_formats import ending_for, served_as
from recto.conversation.message_files import Attachment
from recto.conversation.messages import Data, File
from recto.errors import FileRefused, NotFound, StorageDown
from recto.files.file_names import content_disposition, safe_name
from recto.files.file_type import HEAD_BYTES, FileType, detect_type
from recto.files.ports import AttachmentRows, ServedAs, Storage, Upload
from recto.files.storage.storage_health import StorageHealth
from recto.files.storage.thread_queue import ThreadQueue

LOGGER = logging.getLogger("recto.files")
HASHED_AT_ONCE = 2**20
# Up to this many bytes, hash in the event loop: starting a thread would take longer.
HASHED_HERE = 2**14
UNUSED_AT_ONCE = 500
# Age from which a sweep deletes bytes without a row. Younger bytes may belong to an upload in progress.
ORPHAN_AGE = timedelta(hours=1)
# Time limit of an upload. It is below ORPHAN_AGE because some storages date a file by the start of its upload: a sweep
# could delete a longer upload before it has a row.
LONGEST_UPLOAD = timedelta(minutes=50)
NO_ROOM = "you may store {room:,} bytes more, and it has more than that. Delete files that you no longer need"


class Attachments:
    """Uploaded files: bytes in a storage, rows in a database.

    `on_delete` receives blob names before the blobs are deleted.
    """

    def __init__(
        self,
        storage: Storage,
        rows: AttachmentRows,
        settings: FileSettings,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
        on_delete: Callable[[Sequence[str]], Awaitable[None]] | None = None,
    ) -> None:
        self._storage = storage
        self._rows = rows
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._on_delete = on_delete
        self._health = StorageHealth(storage.probe)

    async def receive(self, upload: Upload, pieces: AsyncIterable[bytes]) -> Attachment:
        """Store a file. If it breaks a rule, store nothing and raise FileRefused."""
        request = replace(upload, name=safe_name(upload.name))
        limits = [limit for limit in (self._settings.upload_bytes, upload.allowed.max_bytes) if limit]
        incoming = _Incoming(aiter(pieces), min(limits, default=None), upload.room, self._clock)
        head = await incoming.head()
        if not head:
            raise FileRefused("it is empty; send a file with something in it", code="empty")
        type = detect_type(head, request.name, request.declared_type)
        if why := request.allowed.why_not(type.kind, type.mime_type, request.name, 0):
            raise FileRefused(why, code="not_allowed")
        blob = self._new_id()
        async with aclosing(incoming.all()) as body:
            await self._storage.write(blob, body)
        return await self._store(request, type, incoming, blob)

    async def receive_inline(self, owner: str, file: File, allowed: FileInput) -> Attachment:
        """Store a file that a message contains as base64.

        A file with the bytes and name of a stored one reuses its attachment (P3).
        """
        if not isinstance(file.source, Data):
            raise FileRefused("its bytes are not in the message; upload it and send its url", code="not_inline")
        bytes = await asyncio.to_thread(_decode_base64, file.source.base64)
        name = safe_name(file.name or f"{file.kind}{ending_for(file.mime_type)}")
        attachment = await self._rows.find_same(owner, hashlib.sha256(bytes).hexdigest(), name)
        if attachment is not None:
            if await self._is_complete(attachment):
                return attachment
            blob = self._new_id()
            await self._storage.write(blob, _one(bytes))
            return await self._replace_blob(attachment, blob)
        return await self.receive(
            Upload(owner=owner, name=name, allowed=allowed, declared_type=file.mime_type), _one(bytes)
        )

    async def find(self, owner: str, id: str) -> Attachment:
        """Return an attachment of `owner`. Raise NotFound if it belongs to another user."""
        return await self._rows.find(id, owner)

    async def get(self, id: str) -> Attachment:
        """Return an attachment for a caller with a valid signature."""
        return await self._rows.find(id)

    def read(self, attachment: Attachment, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes from `start` up to but not including `end`."""
        return self._storage.read(attachment.blob, start, end)

    async def link(self, attachment: Attachment, seconds: float) -> str | None:
        """Return a URL from which the storage serves the file itself; None if the storage has no URLs."""
        media, is_shown = served_as(attachment.mime_type)
        way = ServedAs(mime_type=media, disposition=content_disposition(attachment.name, inline=is_shown))
        return await self._storage.link(attachment.blob, seconds, way)

    async def delete(self, owner: str, id: str) -> None:
        """Delete an attachment, and its bytes unless another attachment uses them. Its URLs stop working at once."""
        await self.delete_blobs(await self._rows.delete(owner, id))

    async def clean(self) -> int:
        """Delete old uploads that no thread uses, then bytes without a row. Return the number of deletions."""
        before, total = self._clock() - timedelta(hours=self._settings.unused_hours), 0
        count = UNUSED_AT_ONCE if self._settings.unused_hours else 0
        while count >= UNUSED_AT_ONCE:
            count, blobs = await self._rows.delete_unused(before, UNUSED_AT_ONCE)
            await self.delete_blobs(blobs)
            total += count
        before = self._clock() - ORPHAN_AGE
        async with aclosing(self._storage.list_all()) as listing:
            async for batch in listing:
                old = [blob.name for blob in batch if blob.modified < before]
                existing = await self._rows.find_blobs(old) if old else frozenset[str]()
                total += await self.delete_blobs([name for name in old if name not in existing])
        return total

    async def probe(self) -> None:
        """Check that files can be written and read, at most every few seconds. Raise StorageDown."""
        await self._health.check()

    async def _store(self, upload: Upload, type: FileType, incoming: _Incoming, blob: str) -> Attachment:
        if upload.once and (same := await self._rows.find_same(upload.owner, incoming.sha256, upload.name)):
            return await self._reuse(same, blob)
        attachment = Attachment(
            id=self._new_id(),
            owner=upload.owner,
            name=upload.name,
            kind=type.kind,
            mime_type=type.mime_type,
            size=incoming.size,
            sha256=incoming.sha256,
            blob=blob,
            created=self._clock(),
            is_new=True,
        )
        try:
            row = await self._rows.add(attachment, self._settings.user_bytes, self._settings.user_files)
        except FileRefused:
            await self.delete_blobs([blob])
            raise
        # Do not delete the bytes after any other error, because the row may exist. Without a row, a sweep deletes them.
        return row if row.blob == blob else await self._reuse(row, blob)

    async def _reuse(self, attachment: Attachment, blob: str) -> Attachment:
        """Delete the new blob of a file that is already stored. If the old blob is lost, use the new one instead."""
        if not await self._is_complete(attachment):
            return await self._replace_blob(attachment, blob)
        await self.delete_blobs([blob])
        return attachment

    async def _is_complete(self, attachment: Attachment) -> bool:
        """Return True if the blob has the size of the attachment. Reads only the end of the blob."""
        last = attachment.size - 1
        try:
            async with aclosing(self._storage.read(attachment.blob, last, last + 2)) as pieces:
                return len(b"".join([piece async for piece in pieces])) == 1
        except NotFound:
            return False
        except StorageDown:
            # The storage does not answer. Assume that the bytes are complete, so that the attachment stays unchanged.
            return True

    async def _replace_blob(self, attachment: Attachment, blob: str) -> Attachment:
        """Replace a lost blob by a new one with the same bytes, in all attachments that use it."""
        LOGGER.warning("The bytes of attachment %s were lost; they came again, and are there now.", attachment.id)
        await self._rows.rename_blob(attachment.blob, blob)
        mended = await self._rows.find(attachment.id)
        if mended.blob != blob:
            # Another upload of the same bytes has replaced the lost blob first.
            await self.delete_blobs([blob])
        return replace(mended, is_new=attachment.is_new)

    async def delete_blobs(self, blobs: Sequence[str]) -> int:
        """Delete blobs without rows and return their number.

        If the storage is down, return 0: a later sweep deletes them.
        """
        if blobs and self._on_delete:
            # Delete cached texts first. If the server stops in between, the next sweep finds the blobs and repeats
            # both.
            await self._on_delete(blobs)
        try:
            if blobs:
                await self._storage.delete(blobs)
        except StorageDown as error:
            LOGGER.warning("%d files without an owner stay in the storage for now: %s", len(blobs), error.problem)
            return 0
        return len(blobs)


class _Incoming:
    """The bytes of an upload.

    `head` returns the first ones for type detection; `all` yields all, counted and hashed.
    """

    def __init__(
        self, pieces: AsyncIterator[bytes], most: int | None, room: int | None, clock: Callable[[], datetime]
    ) -> None:
        self._pieces = pieces
        self._most = most
        self._room = room
        self._clock = clock
        self._start = clock()
        self._ready = list[bytes]()
        self._waiting = 0
        self._hash = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    async def head(self) -> bytes:
        """Return the first bytes, enough to detect the type."""
        await self._fill(HEAD_BYTES)
        return b"".join(self._ready)[:HEAD_BYTES]

    async def all(self) -> AsyncGenerator[bytes]:
        """Yield all bytes. A thread hashes them in large batches while the next bytes arrive and are stored."""
        with ThreadQueue() as hashing:
            while size := await self._fill(HASHED_AT_ONCE):
                pieces, self._ready, self._waiting = self._ready, [], 0
                if size <= HASHED_HERE:
                    self._add(pieces)
                else:
                    await hashing.put(partial(self._add, pieces))
                for piece in pieces:
                    yield piece
            await hashing.end()

    def _add(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            self._hash.update(piece)

    async def _fill(self, size: int) -> int:
        """Read until `size` bytes are ready or the upload ends. Return the number of ready bytes."""
        while self._waiting < size:
            piece = await anext(self._pieces, None)
            if piece is None:
                break
            # Keep the pieces in a list: joining a large file would cost a fifth of the time of hashing it.
            self._ready.append(piece)
            self._waiting += len(piece)
            self.size += len(piece)
            if self._most is not None and self.size > self._most:
                raise FileRefused(f"it has more than {self._most:,} bytes, which is the most taken", code="too_large")
            if self._room is not None and self.size > self._room:
                raise FileRefused(NO_ROOM.format(room=self._room), code="quota")
            if self._clock() - self._start > LONGEST_UPLOAD:
                minutes = LONGEST_UPLOAD // timedelta(minutes=1)
                raise FileRefused(f"it took longer than {minutes} minutes; send it again, faster", code="too_slow")
        return self._waiting


def _decode_base64(text: str) -> bytes:
    try:
        if len(text) % 4:
            raise ValueError("it has no multiple of four characters")
        return a2b_base64(text, strict_mode=True)
    except (Base64Error, ValueError) as error:
        raise FileRefused(f"its data is no base64 ({error}); encode its bytes anew", code="base64") from error


async def _one(piece: bytes) -> AsyncGenerator[bytes]:
    yield piece
