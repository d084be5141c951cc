"""The bytes of a document that waits for a child: on disk, not in memory. Gone when it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

# Of each document so much is in memory at most, and a shorter one takes no wait for the disk.
MEMORY_BYTES = 2**18
PIECE_BYTES = 2**18

T = TypeVar("T")


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
