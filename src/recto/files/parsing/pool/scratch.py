"""Temporary files of the pool: bytes that wait to be parsed, and a folder for children. Removes none that is in use.

Who has a folder holds a lock on it, which the system takes back from whoever ends, in whatever way. Those that killed
processes left are swept.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

# Of each document so much is in memory at most, and a shorter one takes no wait for the disk.
MEMORY_BYTES = 2**18
PIECE_BYTES = 2**18
T = TypeVar("T")
PREFIX = "recto-parsing-"
# From being made to being locked it takes no time to speak of.
YOUNG_SECONDS = 60


class Spool:
    """Filled with `add`, then given out in pieces. The file has no name, so that nothing is left of it."""

    def __init__(self, folder: Path | None) -> None:
        self._file = TemporaryFile(buffering=MEMORY_BYTES, dir=folder)  # noqa: SIM115 - closed by `close`
        self._size = 0

    async def add(self, piece: bytes) -> None:
        """Add bytes at the end. Raises OSError where the disk is full."""
        self._size += len(piece)
        await self._do(partial(self._file.write, piece))

    async def pieces(self) -> AsyncGenerator[bytes]:
        """All of it, from the beginning."""
        self._file.seek(0)
        while piece := await self._do(partial(self._file.read, PIECE_BYTES)):
            yield piece

    async def _do(self, work: Callable[[], T]) -> T:
        return work() if self._size <= MEMORY_BYTES else await asyncio.to_thread(work)

    def close(self) -> None:
        """Keep nothing."""
        self._file.close()


class ScratchFolder:
    """A folder of this process, until it is removed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _locked(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep() -> None:
    """Remove the folders of processes that are gone."""
    before = time.time() - YOUNG_SECONDS
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_mtime < before and (lock := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """An open folder that nobody else has locked; None where somebody has, or where there are no such locks."""
    if sys.platform == "win32":
        return None
    from fcntl import LOCK_EX, LOCK_NB, flock

    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flock(opened, LOCK_EX | LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
