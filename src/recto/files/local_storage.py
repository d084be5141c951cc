"""Bytes by name in a folder of this machine. Refuses to show a file before it is whole.

A writer of our own: it is faster than a general one, and a killed process leaves one staged file, removed at the next
start.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from recto.errors import NotFound, StorageDown
from recto.files.blobs import checked, try_out
from recto.files.ports import ServedAs, StoredBlob

PRIVATE_FOLDER, PRIVATE = 0o700, 0o600
STAGED = "incoming"
READ_BYTES = 2**20
LISTED_AT_ONCE = 1000
# No upload takes as long: a staged file that nobody has written to since is nobody's.
STAGED_SECONDS = 3_600

T = TypeVar("T")


class LocalStorage:
    """Files in a folder, two levels deep. With `is_shared`, other processes may be writing there.

    With `is_durable`, a file that was stored survives a power cut; without, the death of this process.
    """

    def __init__(self, folder: Path, *, is_shared: bool = False, is_durable: bool = True) -> None:
        self._folder = folder
        self._is_durable = is_durable
        self._staged = folder / STAGED
        self._staged.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        self._remove_leftovers(STAGED_SECONDS if is_shared else 0)

    async def write(self, name: str, pieces: AsyncIterable[bytes]) -> None:
        """Store bytes as they come. All of them are there before the file has its name."""
        staged = _StagedFile(self._staged / checked(name), self._path(name), is_durable=self._is_durable)
        # One behind: the last piece is written and named in one go, and of a small file there is no other.
        waiting = b""
        try:
            async for piece in pieces:
                if waiting:
                    await _on_disk(lambda piece=waiting: staged.write(piece))
                waiting = piece
            await _on_disk(lambda: staged.finish(waiting))
        except BaseException:
            # Shielded: who is cancelled once more leaves nothing either. What went wrong first is what is told.
            with suppress(StorageDown):
                await asyncio.shield(asyncio.ensure_future(_on_disk(staged.drop)))
            raise

    async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        """The bytes from `start` up to but not including `end`, in pieces."""
        file = _StoredFile(self._path(name))
        place = start
        try:
            while wanted := READ_BYTES if end is None else max(0, min(READ_BYTES, end - place)):
                piece = await _on_disk(lambda place=place, wanted=wanted: file.read(place, wanted))
                if not piece:
                    return
                yield piece
                place += len(piece)
        finally:
            file.close()

    async def delete(self, names: Sequence[str]) -> None:
        """Delete what is there of these."""
        paths = [self._path(name) for name in names]

        def delete_all() -> None:
            for path in paths:
                path.unlink(missing_ok=True)

        await _on_disk(delete_all)

    async def list_all(self) -> AsyncGenerator[Sequence[StoredBlob]]:
        """Everything that is stored, some at a time."""
        blobs = self._blobs()
        while some := await _on_disk(lambda: list(islice(blobs, LISTED_AT_ONCE))):
            yield some

    async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
        """None: a folder has no urls."""
        del name, seconds, served

    async def probe(self) -> None:
        """Write, read and delete, as everything else does."""
        await try_out(self)

    def _path(self, name: str) -> Path:
        # By a hash: names begin with the time they were made, and would all lie in one folder.
        digest = hashlib.sha256(checked(name).encode()).hexdigest()
        return self._folder / digest[:2] / digest[2:4] / name

    def _blobs(self) -> Iterator[StoredBlob]:
        for path in self._folder.glob("??/??/*"):
            # One that was deleted meanwhile is not there.
            with suppress(FileNotFoundError):
                found = path.stat()
                written = datetime.fromtimestamp(found.st_mtime, UTC)
                yield StoredBlob(name=path.name, size=found.st_size, written=written)

    def _remove_leftovers(self, seconds: float) -> None:
        before = time.time() - seconds
        for path in self._staged.iterdir():
            with suppress(FileNotFoundError):
                if not seconds or path.stat().st_mtime < before:
                    path.unlink()


class _StagedFile:
    """A file that is being written. One thread at a time acts on it, also when nobody waits for it any more."""

    def __init__(self, path: Path, target: Path, *, is_durable: bool) -> None:
        self._path = path
        self._target = target
        self._is_durable = is_durable
        self._lock = threading.Lock()
        self._file: int | None = None
        self._made: Path | None = None
        self._is_dropped = False

    def write(self, piece: bytes) -> None:
        """Add bytes."""
        with self._lock:
            self._write(piece)

    def finish(self, last: bytes) -> None:
        """Add the last bytes and give the file its name. A name never stands for half a file."""
        with self._lock:
            self._write(last)
            if self._is_dropped:
                return
            file = self._opened()
            if self._is_durable:
                os.fsync(file)
            self._close()
            for folder in (self._target.parent.parent, self._target.parent):
                folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            self._path.replace(self._target)
            self._made = self._target

    def _write(self, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest and not self._is_dropped:
            rest = rest[os.write(self._opened(), rest) :]

    def drop(self) -> None:
        """Leave nothing, however far it was."""
        with self._lock:
            self._is_dropped = True
            self._close()
            if self._made:
                self._made.unlink(missing_ok=True)

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, PRIVATE)
            self._made = self._path
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class _StoredFile:
    """A file that is being read. It is opened at the first read, and closed once, whoever is still reading."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._is_closed = False

    def read(self, place: int, wanted: int) -> bytes:
        """Some bytes; none at the end, and none when nobody waits for them any more."""
        with self._lock:
            if self._is_closed:
                return b""
            if self._file is None:
                self._file = self._open()
            self._file.seek(place)
            return self._file.read(wanted)

    def close(self) -> None:
        """Close it. A read under way is waited for: it takes no longer than the disk."""
        with self._lock:
            self._is_closed = True
            if self._file:
                self._file.close()

    def _open(self) -> BinaryIO:
        try:
            return self._path.open("rb", buffering=0)
        except FileNotFoundError:
            raise NotFound(what="file", id=self._path.name) from None


# Without it, one system would change line ends.
_BINARY = getattr(os, "O_BINARY", 0)


async def _on_disk(act: Callable[[], T]) -> T:
    """Act in a thread, for disks can be slow. What goes wrong is said without the paths of this machine."""
    try:
        return await asyncio.to_thread(act)
    except OSError as error:
        raise StorageDown(problem=error.strerror or str(error)) from error
