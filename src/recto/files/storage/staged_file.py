"""A file that gets its name in a folder only once all bytes are there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

PRIVATE_FOLDER, PRIVATE = 0o700, 0o600
# Without this flag, Windows would change line ends.
_BINARY = getattr(os, "O_BINARY", 0)


class Disk:
    """Flushing of files and folders to disk, so that they survive a power cut.

    Callers flush the bytes before the file gets its name, and the folder afterwards.
    """

    def __init__(self, sync: Callable[[int], None] | None) -> None:
        self._sync = sync

    def keep(self, file: int) -> None:
        """Flush the bytes of an open file."""
        if self._sync:
            self._sync(file)

    def keep_folder(self, folder: Path) -> None:
        """Flush a folder's entries to disk. Does nothing where the system is not POSIX."""
        if self._sync and os.name == "posix":
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                self._sync(descriptor)
            finally:
                os.close(descriptor)

    def make_folder(self, folder: Path) -> None:
        """Make a folder and its parents."""
        if folder.is_dir():
            return
        self.make_folder(folder.parent)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        self.keep_folder(folder.parent)


class StagedFile:
    """A file that is being written. One thread at a time uses it, because a thread may outlive its cancelled caller."""

    def __init__(self, path: Path, target: Path, disk: Disk) -> None:
        self._path = path
        self._target = target
        self._disk = disk
        self._lock = threading.Lock()
        self._file: int | None = None
        self._current_path: Path | None = None
        self._is_dropped = False

    def write(self, pieces: Sequence[bytes]) -> None:
        """Append bytes."""
        with self._lock:
            self._write(pieces)

    def finish(self, last: Sequence[bytes]) -> None:
        """Append the last bytes and give the file its name."""
        with self._lock:
            self._write(last)
            if self._is_dropped:
                return
            self._disk.keep(self._descriptor())
            self._close()
            self._disk.make_folder(self._target.parent)
            self._path.replace(self._target)
            self._current_path = self._target
            self._disk.keep_folder(self._target.parent)

    def _write(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            rest = memoryview(piece)
            while rest and not self._is_dropped:
                rest = rest[os.write(self._descriptor(), rest) :]

    def drop(self) -> None:
        """Delete the file in any state."""
        with self._lock:
            self._is_dropped = True
            self._close()
            if self._current_path:
                self._current_path.unlink(missing_ok=True)

    def _descriptor(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, PRIVATE)
            self._current_path = self._path
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
