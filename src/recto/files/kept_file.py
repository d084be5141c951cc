"""One file of a kept document, read at any place and added to at its end. Refuses what is no file."""

from __future__ import annotations

import os
import stat
import threading
import weakref
from pathlib import Path

from recto.files.staged import PRIVATE, Disk

READ_NOW_BYTES = 2**17
# Only some systems can say whether bytes are in memory.
_NOW: int | None = getattr(os, "RWF_NOWAIT", None)


class KeptFile:
    """A file that is read anywhere and added to at its end. Closed when nobody has it any more."""

    def __init__(self, path: Path, flags: int) -> None:
        self._file = os.open(path, flags, PRIVATE)
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._file)
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise FileNotFoundError(f"{path.name} is no file")

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return os.fstat(self._file).st_size

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`. Raises ValueError where the file is shorter."""
        with self._lock:
            os.lseek(self._file, start, os.SEEK_SET)
            pieces: list[bytes] = []
            rest = end - start
            while rest and (piece := os.read(self._file, rest)):
                pieces.append(piece)
                rest -= len(piece)
        if rest:
            raise ValueError("the file is shorter than it was")
        return b"".join(pieces)

    def read_now(self, start: int, end: int) -> bytes | None:
        """The same bytes if that takes no wait for the disk: a thread would take many times as long as this."""
        if _NOW is None or end - start > READ_NOW_BYTES:
            return None
        found = bytearray(end - start)
        try:
            count = os.preadv(self._file, [found], start, _NOW)
        except OSError:
            return None
        return bytes(found) if count == len(found) else None

    def add(self, data: bytes) -> None:
        """Add bytes at the end."""
        rest = memoryview(data)
        with self._lock:
            os.lseek(self._file, 0, os.SEEK_END)
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def keep(self, disk: Disk) -> None:
        """Bring it to the disk."""
        disk.keep(self._file)
