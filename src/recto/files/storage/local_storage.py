"""Blobs in a folder of this machine. A file is visible only once it is complete.

Our own code, because it is faster than a general file system library. The next server deletes the staged files of a
killed process.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import stat
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from recto.errors import NotFound, StorageDown
from recto.files.ports import ServedAs, StoredBlob
from recto.files.storage.blobs import LABEL, check_name, is_ours, try_out
from recto.files.storage.staged_file import PRIVATE_FOLDER, Disk, StagedFile
from recto.files.storage.thread_queue import ThreadQueue
from recto.ids import new_id

# Files copied between two progress reports.
STEP = 100
STAGED = "incoming"
READ_BYTES = WRITTEN_AT_ONCE = 2**20
LISTED_AT_ONCE = 1000
# Age of a leftover. No upload takes so long, so no process writes to an older staged file.
STAGED_SECONDS = 3_600
T = TypeVar("T")


class LocalStorage:
    """Files in a folder, two levels deep. With `is_shared`, other processes may write there too.

    With `is_durable`, a stored file survives a power cut, otherwise only a crash of this process.
    """

    def __init__(
        self, folder: Path, *, is_shared: bool = False, is_durable: bool = True, sync: Callable[[int], None] = os.fsync
    ) -> None:
        self._folder = folder
        self._is_shared = is_shared
        self._disk = Disk(sync if is_durable else None)
        self._staged = folder / STAGED
        self._staged.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)

    async def write(self, name: str, pieces: AsyncIterable[bytes]) -> None:
        await self._write(check_name(name), self._path(name), pieces)

    async def _write(self, name: str, target: Path, pieces: AsyncIterable[bytes]) -> None:
        staged = StagedFile(self._staged / name, target, self._disk)
        try:
            last = await _write_most(staged, pieces)
            # A small file is written and renamed in one step.
            await _on_disk(lambda: staged.finish(last))
        except BaseException:
            # Shield the cleanup from a second cancellation, and suppress its errors in favor of the first one.
            with suppress(StorageDown):
                await asyncio.shield(asyncio.ensure_future(_on_disk(staged.drop)))
            raise

    async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        file = _StoredFile(self._path(name))
        place = start
        try:
            while size := READ_BYTES if end is None else max(0, min(READ_BYTES, end - place)):
                piece = await _on_disk(lambda place=place, count=size: file.read(place, count))
                if not piece:
                    return
                yield piece
                place += len(piece)
        finally:
            file.close()

    async def delete(self, names: Sequence[str]) -> None:
        paths = [self._path(name) for name in names]

        def delete_all() -> None:
            failed: OSError | None = None
            for path in paths:
                # An error does not stop the other deletions.
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    failed = error
            if failed:
                raise failed

        await _on_disk(delete_all)

    async def list_all(self) -> AsyncGenerator[Sequence[StoredBlob]]:
        blobs = self._blobs()
        while some := await _on_disk(lambda: list(islice(blobs, LISTED_AT_ONCE))):
            yield some

    async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
        """Return None: a folder has no URLs."""
        del name, seconds, served

    async def probe(self) -> None:
        await try_out(self)

    async def read_label(self) -> bytes | None:
        def read() -> bytes | None:
            with suppress(FileNotFoundError):
                return (self._folder / LABEL).read_bytes()
            return None

        return await _on_disk(read)

    async def write_label(self, label: bytes) -> None:
        async def whole() -> AsyncGenerator[bytes]:
            yield label

        await self._write(new_id(), self._folder / LABEL, whole())

    async def remove_leftovers(self) -> None:
        """Delete all staged files; in a shared folder, only old ones."""

        def remove_old() -> None:
            before = time.time() - STAGED_SECONDS
            for path in filter(lambda path: is_ours(path.name), self._staged.iterdir()):
                with suppress(FileNotFoundError):
                    if not self._is_shared or path.stat().st_mtime < before:
                        path.unlink()

        await _on_disk(remove_old)

    def _path(self, name: str) -> Path:
        # Group blobs by hash. Names start with a time, so their first characters would put most blobs into one folder.
        digest = hashlib.sha256(check_name(name).encode()).hexdigest()
        return self._folder / digest[:2] / digest[2:4] / name

    def _blobs(self) -> Iterator[StoredBlob]:
        for path in self._folder.glob("??/??/*"):
            if not is_ours(path.name) or path != self._path(path.name):
                continue
            # Another process may have deleted it.
            with suppress(FileNotFoundError):
                status = path.stat()
                modified = datetime.fromtimestamp(status.st_mtime, UTC)
                if stat.S_ISREG(status.st_mode):
                    yield StoredBlob(name=path.name, size=status.st_size, modified=modified)


def copy_files(source: Path, target: Path, copied: Callable[[int], None]) -> int:
    """Copy blobs that are missing in `target`, each completely or not at all. Return their number."""
    count = 0
    for place in _blobs(source):
        goal = target / place
        if goal.exists():
            continue
        goal.parent.mkdir(parents=True, exist_ok=True)
        draft = goal.with_name(f"{goal.name}.part")
        try:
            shutil.copyfile(source / place, draft)
        except FileNotFoundError:
            # Deleted meanwhile.
            continue
        draft.replace(goal)
        count += 1
        if count % STEP == 0:
            copied(count)
    return count


class _StoredFile:
    """A file to read. The first read opens it, and `close` waits for a read in progress."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._is_closed = False

    def read(self, place: int, size: int) -> bytes:
        """Return up to `size` bytes; empty at the end and after `close`."""
        with self._lock:
            if self._is_closed:
                return b""
            if self._file is None:
                try:
                    self._file = self._path.open("rb", buffering=0)
                except FileNotFoundError:
                    raise NotFound(what="file", id=self._path.name) from None
            self._file.seek(place)
            return self._file.read(size)

    def close(self) -> None:
        """Close the file, after any read in progress."""
        with self._lock:
            self._is_closed = True
            if self._file:
                self._file.close()


def _blobs(folder: Path) -> Iterator[Path]:
    for here, below, names in os.walk(folder):
        if Path(here) == folder and STAGED in below:
            below.remove(STAGED)
        # Omit the label: the copy is another storage and gets its own label.
        for name in filter(is_ours, names):
            yield (Path(here) / name).relative_to(folder)


async def _write_most(staged: StagedFile, pieces: AsyncIterable[bytes]) -> Sequence[bytes]:
    """Write bytes while the next ones arrive. Return the last ones, which the caller must write."""
    waiting, size = list[bytes](), 0
    with ThreadQueue() as writing:
        async for piece in pieces:
            if size >= WRITTEN_AT_ONCE:
                await writing.put(partial(_acted, partial(staged.write, waiting)))
                waiting, size = [], 0
            waiting.append(piece)
            size += len(piece)
        await writing.end()
    return waiting


async def _on_disk(act: Callable[[], T]) -> T:
    """Run a function in a thread: disks can be slow."""
    return await asyncio.to_thread(_acted, act)


def _acted(act: Callable[[], T]) -> T:
    """Run a function. Replace its OSError, which contains paths of this machine, by StorageDown."""
    try:
        return act()
    except OSError as error:
        raise StorageDown(problem=error.strerror or str(error)) from error
