"""Blobs in an S3 bucket. An interrupted upload leaves nothing there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from recto.errors import NotFound, StorageDown
from recto.files.ports import ServedAs, StoredBlob
from recto.files.storage.blobs import LABEL, check_name, is_ours, try_out
from recto.files.storage.presign import S3Credentials, presign

if TYPE_CHECKING:
    from obstore.store import S3Config

# Smallest part size of S3. An upload needs memory for three parts: two in flight and one that is being filled.
PART_BYTES = 5 * 2**20
PARTS_AT_ONCE = 2
READ_BYTES, FED_BYTES = 4 * 2**20, 2**20
LISTED_AT_ONCE = 1000
PROBLEM_CHARACTERS = 200
# Limits of a request to the storage. They are short, so that callers learn in time that the storage is down.
RETRIES, RETRY_SECONDS, REQUEST_SECONDS = 3, 15, 30


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """The place of a storage. Without `endpoint` it is Amazon's; `prefix` is a folder in the bucket."""

    name: str
    who: S3Credentials
    prefix: str = ""
    endpoint: str | None = None

    @property
    def address(self) -> str:
        """The URL of the bucket."""
        return f"{self.endpoint or f'https://s3.{self.who.region}.amazonaws.com'}/{self.name}"


class S3Storage:
    """Objects in a bucket, each under the prefix and its name."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        who = bucket.who
        keys: S3Config = {"access_key_id": who.access_key, "secret_access_key": who.secret_key, "region": who.region}
        if who.token:
            keys["session_token"] = who.token
        if bucket.endpoint:
            keys["endpoint"] = bucket.endpoint
        is_plain = bool(bucket.endpoint and bucket.endpoint.startswith("http://"))
        self._store = S3Store(
            bucket.name,
            prefix=bucket.prefix or None,
            config=keys,
            client_options={"allow_http": is_plain, "timeout": timedelta(seconds=REQUEST_SECONDS)},
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
        )
        self._ending: set[asyncio.Task[None]] = set()

    async def write(self, name: str, pieces: AsyncIterable[bytes]) -> None:
        """Store small blobs in one request, larger ones in parts."""
        path, feed = check_name(name), _Feed(pieces)
        putting = asyncio.ensure_future(self._put(path, feed))
        try:
            await asyncio.wait([putting])
        except asyncio.CancelledError:
            feed.stop()
            ending = asyncio.ensure_future(self._undo(path, putting))
            # A second cancellation ends the waiting, but not this task.
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
            await asyncio.shield(ending)
            raise
        await putting

    async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        """Yield the bytes of a range, one request for each piece, so that a slow reader holds no connection."""
        path, place = check_name(name), start
        with _map_errors(name):
            size = (await obstore.head_async(self._store, path))["size"]
        last = size if end is None else min(end, size)
        while place < last:
            with _map_errors(name):
                upto = min(place + READ_BYTES, last)
                piece = bytes(await obstore.get_range_async(self._store, path, start=place, end=upto))
            yield piece
            place += len(piece)

    async def delete(self, names: Sequence[str]) -> None:
        paths = [check_name(name) for name in names]
        with _map_errors("some"):
            if paths:
                await obstore.delete_async(self._store, paths)

    async def list_all(self) -> AsyncGenerator[Sequence[StoredBlob]]:
        listing = obstore.list(self._store, chunk_size=LISTED_AT_ONCE)  # pyright: ignore[reportUnknownMemberType] - of Arrow
        while True:
            with _map_errors("any"):
                some = await anext(listing, None)
            if some is None:
                return
            if blobs := [one for one in some if is_ours(one["path"])]:
                yield [StoredBlob(name=one["path"], size=one["size"], modified=one["last_modified"]) for one in blobs]

    async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
        bucket = self._bucket
        query: dict[str, str] = {}
        if served:
            query = {"response-content-type": served.mime_type, "response-content-disposition": served.disposition}
        place = "/".join(filter(None, (bucket.address, bucket.prefix, check_name(name))))
        return presign(place, bucket.who, now=datetime.now(UTC), seconds=seconds, query=query)

    async def probe(self) -> None:
        await try_out(self)

    async def read_label(self) -> bytes | None:
        try:
            with _map_errors(LABEL):
                return bytes(await (await obstore.get_async(self._store, LABEL)).bytes_async())
        except NotFound:
            return None

    async def write_label(self, label: bytes) -> None:
        with _map_errors(LABEL):
            await obstore.put_async(self._store, LABEL, label)

    async def remove_leftovers(self) -> None:
        """Do nothing: a rule of the bucket deletes unfinished uploads."""

    async def _put(self, path: str, feed: _Feed) -> None:
        first = bytearray()
        async for piece in feed:
            first += piece
            if len(first) >= PART_BYTES:
                break
        body = bytes(first) if len(first) < PART_BYTES else _together(bytes(first), feed)
        try:
            await obstore.put_async(self._store, path, body, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        except (BaseError, OSError) as error:
            if error is feed.error:
                raise
            raise StorageDown(problem=_words(error)) from error

    async def _undo(self, path: str, putting: asyncio.Future[None]) -> None:
        """Wait for the end of a cancelled upload. Delete the blob if it is complete."""
        await asyncio.wait([putting])
        # If this fails, a sweep deletes the blob later. The caller gets only the cancellation.
        with suppress(StorageDown):
            if not putting.cancelled() and putting.exception() is None:
                await self.delete([path])


class _Feed:
    """The bytes of an upload. `stop` ends them with an error, so that a multipart upload aborts.

    Cancelling the upload would not abort it.
    """

    def __init__(self, pieces: AsyncIterable[bytes]) -> None:
        self._pieces = aiter(pieces)
        self._next: asyncio.Task[bytes | None] | None = None
        self._is_stopped = False
        self.error: BaseException | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._is_stopped:
            raise _BrokenOff
        self._next = asyncio.ensure_future(self._read())
        try:
            piece = await self._next
        except asyncio.CancelledError:
            raise _BrokenOff from None
        except Exception as error:
            self.error = error
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece

    def stop(self) -> None:
        """End the bytes with an error."""
        self._is_stopped = True
        if self._next:
            self._next.cancel()

    async def _read(self) -> bytes | None:
        """Return several pieces together, because each call costs a switch from the storage's thread to the loop."""
        pieces, size = list[bytes](), 0
        while size < FED_BYTES and (piece := await anext(self._pieces, None)) is not None:
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces) if pieces else None


class _BrokenOff(Exception):
    """The writer was cancelled."""


async def _together(first: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for piece in rest:
        yield piece


@contextmanager
def _map_errors(name: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(what="file", id=name) from error
    except (BaseError, OSError) as error:
        raise StorageDown(problem=_words(error)) from error


def _words(error: Exception) -> str:
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return "it refused our credentials"
    # Remove the address before the dash and the response after the first line, which users do not need.
    return str(error).partition("\n")[0].rpartition(" - ")[2].partition(": <")[0][:PROBLEM_CHARACTERS]
