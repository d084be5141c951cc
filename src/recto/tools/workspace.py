"""Files in a workspace, a thread's own folder. No path leads out of it: not by `..`, not by links, not in a race.

Every folder on the way is opened by its name in the one before, and never through a link; what was opened stays what
it is, whatever is put in its place meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO
from uuid import uuid4

from recto.errors import ToolError

LONGEST_NAME = 255
LONGEST_PATH = 1_024
MOST_FOLDERS = 32
SHOWN = 100
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file that was written: its path in the workspace, and whether another was there before."""

    path: str
    size: int
    is_replaced: bool


def path_parts(path: str) -> tuple[str, ...]:
    """The names a path in a workspace consists of, the file's last. Raises ToolError for one that is none."""
    told = f"The path {path[:SHOWN]!r}"
    if CONTROLS.search(path):
        raise ToolError(f"{told} has control characters. Leave them out.")
    if _bytes_in(path) > LONGEST_PATH:
        raise ToolError(f"{told} ... is too long: {LONGEST_PATH} bytes are allowed.")
    if path.startswith("/"):
        raise ToolError(f"{told} begins with /. Paths are relative to the workspace, such as data/table.csv.")
    if "\\" in path:
        raise ToolError(f"{told} has a backslash. Put / between folders.")
    names = path.split("/")
    if ".." in names:
        raise ToolError(f"{told} has `..` in it. Name a place inside the workspace.")
    if names[-1] in ("", "."):
        raise ToolError(f"{told} names no file. Say what the file is to be called, such as data/table.csv.")
    parts = tuple(name for name in names if name not in ("", "."))
    if any(_bytes_in(name) > LONGEST_NAME for name in parts):
        raise ToolError(f"{told} ... has a name that is too long: {LONGEST_NAME} bytes are allowed.")
    if len(parts) > MOST_FOLDERS + 1:
        raise ToolError(f"{told} ... is {len(parts) - 1} folders deep, {MOST_FOLDERS} are allowed.")
    return parts


def _bytes_in(name: str) -> int:
    try:
        return len(name.encode())
    except UnicodeEncodeError as error:
        raise ToolError("The path has half a character in it. Write it again.") from error


class NewFile:
    """A file on its way into a workspace: there whole once it is finished, or not at all.

    Every step blocks, may be taken in another thread than the one before, and raises ToolError where it cannot be
    taken. Who breaks off abandons it, whatever step a thread is at: nothing is left of it, and no new folder.
    """

    def __init__(self, root: Path, parts: tuple[str, ...]) -> None:
        self._root = root
        self._parts = parts
        self._name = f".recto-{uuid4().hex}.part"
        self._top: int | None = None
        self._file: BinaryIO | None = None
        self._is_over = False
        self._lock = Lock()

    def begin(self) -> None:
        """Make the workspace where it is missing. A place where no file can be is refused before any is written."""
        with self._lock, self._told():
            if self._is_over:
                return
            self._top = _open_root(self._root)
            _look_ahead(self._top, self._parts)
            descriptor = os.open(self._name, NEW_FILE, PRIVATE_FILE, dir_fd=self._top)
            self._file = os.fdopen(descriptor, "wb")

    def write(self, piece: bytes) -> None:
        """Add to the file."""
        with self._lock, self._told():
            if self._file is not None:
                self._file.write(piece)

    def finish(self) -> Written:
        """Put the file in its place, in folders made where they are missing."""
        with self._lock, self._told():
            if self._file is None or self._top is None:
                raise ToolError(f"{'/'.join(self._parts)} was not written: that was broken off.")
            size = self._file.tell()
            self._file.close()
            with open_folder(self._top, self._parts[:-1], make=True) as folder:
                is_replaced = _is_file(folder, self._parts)
                os.rename(self._name, self._parts[-1], src_dir_fd=self._top, dst_dir_fd=folder)
        return Written(path="/".join(self._parts), size=size, is_replaced=is_replaced)

    def abandon(self) -> None:
        """Leave nothing behind; of a finished file nothing is taken away."""
        with self._lock:
            self._is_over = True
            if self._file is not None:
                # What cannot be flushed is not wanted any more.
                with suppress(OSError):
                    self._file.close()
                self._file = None
            if self._top is not None:
                with suppress(OSError):
                    os.unlink(self._name, dir_fd=self._top)
                os.close(self._top)
                self._top = None

    @contextmanager
    def _told(self) -> Generator[None]:
        """What the system says against it, without the paths of this machine."""
        try:
            yield
        except OSError as error:
            raise ToolError(f"{'/'.join(self._parts)} cannot be written: {error.strerror}.") from error


def _open_root(root: Path) -> int:
    """The workspace, made where it is missing, with what it is in, for its owner alone."""
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    return os.open(root, FOLDER)


@contextmanager
def open_folder(top: int, names: tuple[str, ...], *, make: bool = False) -> Generator[int]:
    """The folder of these names in an open one; missing ones are made, or raise FileNotFoundError."""
    folder = os.dup(top)
    try:
        for depth in range(len(names)):
            inner = _inner(folder, names[: depth + 1], make=make)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _inner(folder: int, names: tuple[str, ...], *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(names[-1], PRIVATE_FOLDER, dir_fd=folder)
    try:
        return os.open(names[-1], FOLDER, dir_fd=folder)
    except OSError as error:
        # A link is the one or the other, by the system's taste.
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise ToolError(f"{'/'.join(names)} is no folder, or only a link to one. Choose another path.") from error


def _look_ahead(top: int, parts: tuple[str, ...]) -> None:
    """Refuse a bad place before anything is written."""
    with suppress(FileNotFoundError), open_folder(top, parts[:-1]) as folder:
        _is_file(folder, parts)


def _is_file(folder: int, parts: tuple[str, ...]) -> bool:
    """Whether a file is there already. Anything else there is refused."""
    try:
        mode = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "no plain file"
        raise ToolError(f"{'/'.join(parts)} is {what}. Choose another path.")
    return True
