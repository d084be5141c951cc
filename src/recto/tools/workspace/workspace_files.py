"""Files in a workspace. No path leads out of it, whether by `..`, by links or in a race.

Each folder on the way is opened by name in its parent, never through a link. An open file stays the same, even if its
path is replaced.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO, TypeAlias
from uuid import uuid4

from recto.config.run_settings import FileToolSettings, SearchSettings, WorkSettings
from recto.errors import ToolError

LONGEST_NAME = 255
MOST_FOLDERS = 32
SHOWN_CHARACTERS = 100
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Permissions withheld from others for new files: all, or none beyond the umask.
PRIVATE, SHARED = 0o077, 0o000
NEW_FOLDER_MODE, NEW_FILE_MODE = 0o777, 0o666
PRIVATE_FOLDER, PRIVATE_FILE = NEW_FOLDER_MODE & ~PRIVATE, NEW_FILE_MODE & ~PRIVATE
PERMISSIONS = 0o777
TURN_SECONDS, TURN_TRIES = 1.0, 200
# Function that receives the folder and the existing file (None if there is none) right before the replacement. It
# raises to reject the replacement.
PlaceCheck: TypeAlias = Callable[[int, os.stat_result | None], None]
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
GIT = ".git"
# The name of an unfinished file in the workspace.
PART = re.compile(r"\.recto-[0-9a-f]{32}\.part")
FULL = (
    "{path} does not fit: the workspace holds {held:,} bytes besides it and may hold {most:,}, so {room:,} are left, "
    "and the file has more. Put it in the place of a file that is not needed any more, or tell the user."
)
EXISTS = "{path} is there already, and was not changed. Change it with filesystem-edit, or choose another path."
UNCHANGEABLE = (
    "{path} is kept as it is: it can be read where it is seen, and not changed. Tell the user what to change there."
)
MISSING_FOLDER = "The folder to work in is not there any more. Nothing was done. Tell the user to put it back."


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The folder a thread works in. A thread's own folder may hold `most_bytes` (0: no limit) and is deleted with the
    thread.

    A folder that the operator gave is shared by threads and may contain the server's own files: tools do not see
    `hidden` paths and do not change `guarded` ones. `private` paths must not be visible anywhere. `search` and `limits`
    bound searches, reads and edits.
    """

    folder: Path
    is_own: bool = True
    most_bytes: int = WorkSettings.workspace_bytes
    hidden: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    private: tuple[Path, ...] = ()
    search: SearchSettings = SearchSettings()
    limits: FileToolSettings = FileToolSettings()

    @property
    def is_gone(self) -> bool:
        """True if the operator's folder is missing. The server never creates it."""
        return not self.is_own and not self.folder.is_dir()


def reject_change(names: tuple[str, ...], workspace: Workspace) -> None:
    """Raise ToolError for a place that tools must not change: guarded or hidden."""
    if ".." in names:
        raise ToolError(f"{'/'.join(names)} cannot be made: a link on the way leads through what is not there.")
    # Reject files in `.git`, because git runs some of them for its next user. Commands may use git themselves.
    is_of_git = not workspace.is_own and any(name.lower() == GIT for name in names)
    places = [tuple(path.split("/")) for path in (*workspace.guarded, *workspace.hidden)]
    if is_of_git or any(names[: len(parts)] == parts for parts in places):
        raise ToolError(UNCHANGEABLE.format(path="/".join(names)))


@dataclass(frozen=True, kw_only=True)
class WrittenFile:
    """A written file: its path in the workspace, size, and whether it replaced another."""

    path: str
    size: int
    is_replaced: bool


class NewFile:
    """A file being written into a workspace. It appears only once it is complete.

    Every step blocks, may run on any thread, and raises ToolError if it fails. After a cancel, call `abandon` to remove
    the file, even while another thread runs a step.

    The workspace is measured at the start, so add one file at a time if there is a limit. A file in a thread's own
    folder is private. A file that replaces another keeps the permissions and owner in `like`.
    """

    def __init__(self, workspace: Workspace, parts: tuple[str, ...], *, like: os.stat_result | None = None) -> None:
        self._workspace = workspace
        self._parts = parts
        self._most = workspace.most_bytes
        self._umask = PRIVATE if workspace.is_own else SHARED
        self._like = like
        self._stored_bytes = 0
        self._name = f".recto-{uuid4().hex}.part"
        self._top: int | None = None
        self._file: BinaryIO | None = None
        self._is_over = False
        self._lock = Lock()

    def begin(self) -> None:
        """Open a part file. Create a missing workspace. First reject a path that cannot be a file."""
        with self._lock, self._as_tool_errors():
            if self._is_over:
                return
            reject_change(self._parts, self._workspace)
            self._top = open_root(self._workspace)
            # Reject a bad place before writing.
            old: os.stat_result | None = None
            with suppress(FileNotFoundError), open_folder(self._top, self._parts[:-1]) as folder:
                old = _file_there(folder, self._parts)
            if self._most:
                self._stored_bytes = bytes_in(self._top) - (old.st_size if old else 0)
            descriptor = os.open(self._name, NEW_FILE, NEW_FILE_MODE & ~self._umask, dir_fd=self._top)
            self._file = os.fdopen(descriptor, "wb")
            if self._like is not None:
                like = self._like
                own = os.fstat(descriptor)
                if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
                    # Only privileged users can give files away.
                    with suppress(PermissionError):
                        os.fchown(descriptor, like.st_uid, like.st_gid)
                os.fchmod(descriptor, like.st_mode & PERMISSIONS)

    def write(self, piece: bytes) -> None:
        """Append to the file. Raises ToolError if the workspace would exceed its limit."""
        with self._lock, self._as_tool_errors():
            if self._file is not None:
                size = self._file.tell() + len(piece)
                if self._most and self._stored_bytes + size > self._most:
                    room = max(self._most - self._stored_bytes, 0)
                    path = "/".join(self._parts)
                    raise ToolError(FULL.format(path=path, held=self._stored_bytes, most=self._most, room=room))
                self._file.write(piece)

    def finish(self, check: PlaceCheck | None = None, *, is_new: bool = False) -> WrittenFile:
        """Move the file to its place; create missing folders. `check` may reject it. With `is_new`, replace no file."""
        with self._lock, self._as_tool_errors():
            if self._file is None or self._top is None:
                raise ToolError(f"{'/'.join(self._parts)} was not written: that was broken off.")
            size = self._file.tell()
            self._file.close()
            with open_folder(self._top, self._parts[:-1], make=NEW_FOLDER_MODE & ~self._umask) as folder:
                if check is not None:
                    _wait_for_turn(folder)
                status = _file_there(folder, self._parts)
                if check is not None:
                    check(folder, status)
                if not (is_new and self._is_linked(self._top, folder)):
                    os.rename(self._name, self._parts[-1], src_dir_fd=self._top, dst_dir_fd=folder)
        return WrittenFile(path="/".join(self._parts), size=size, is_replaced=status is not None)

    def _is_linked(self, top: int, folder: int) -> bool:
        """Give the file its final name unless the name is taken. Return False if the file system has no hard links."""
        try:
            os.link(self._name, self._parts[-1], src_dir_fd=top, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            # Some file systems have no hard links. There, the check right before has to suffice.
            if error.errno not in NO_LINKS:
                raise
            return False
        return True

    def abandon(self) -> None:
        """Remove an unfinished file; a finished one stays."""
        with self._lock:
            self._is_over = True
            if self._file is not None:
                # Unflushed data is not needed.
                with suppress(OSError):
                    self._file.close()
                self._file = None
            if self._top is not None:
                with suppress(OSError):
                    os.unlink(self._name, dir_fd=self._top)
                os.close(self._top)
                self._top = None

    @contextmanager
    def _as_tool_errors(self) -> Generator[None]:
        """Convert system errors to ToolErrors without paths of this machine."""
        try:
            yield
        except FileExistsError as error:
            raise ToolError(EXISTS.format(path="/".join(self._parts))) from error
        except OSError as error:
            raise ToolError(f"{'/'.join(self._parts)} cannot be written: {error.strerror}.") from error


def _wait_for_turn(folder: int) -> None:
    """Lock the folder against other processes that check and replace a file in it.

    Closing the folder releases the lock. Stop waiting after `TURN_SECONDS`, because a replacement never holds the lock
    that long.
    """
    for _ in range(TURN_TRIES):
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(TURN_SECONDS / TURN_TRIES)


def open_root(workspace: Workspace) -> int:
    """Open the workspace. Create a thread's own folder and its parents if missing, private to their owner."""
    require_folder(workspace)
    root = workspace.folder
    missing = [folder for folder in (root, *root.parents) if workspace.is_own and not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    return os.open(root, FOLDER)


def require_folder(workspace: Workspace) -> None:
    """Raise ToolError if the operator's folder is missing. The server never creates it."""
    if workspace.is_gone:
        raise ToolError(MISSING_FOLDER)


@contextmanager
def open_folder(top: int, names: tuple[str, ...], *, make: int | None = None) -> Generator[int]:
    """Open a folder below an open one. Create missing folders with mode `make`; without it, raise FileNotFoundError."""
    folder = os.dup(top)
    try:
        for depth, name in enumerate(names, start=1):
            if make is not None:
                with suppress(FileExistsError):
                    os.mkdir(name, make, dir_fd=folder)
            try:
                inner = os.open(name, FOLDER, dir_fd=folder)
            except OSError as error:
                # Systems differ in the error for a link.
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                path = "/".join(names[:depth])
                raise ToolError(f"{path} is no folder, or only a link to one. Choose another path.") from error
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _file_there(folder: int, parts: tuple[str, ...]) -> os.stat_result | None:
    """Return the stat of the existing file, or None. Raise ToolError for anything but a plain file."""
    try:
        status = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "no plain file"
        raise ToolError(f"{'/'.join(parts)} is {what}. Choose another path.")
    return status


def bytes_in(top: int) -> int:
    """Return the total size of all files below an open folder. Links are not followed and not counted."""
    total, pending = 0, list[tuple[str, ...]]([()])
    while pending:
        names = pending.pop()
        # Skip a folder that is gone or has become a link.
        with suppress(FileNotFoundError, ToolError), open_folder(top, names) as folder, os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    total += status.st_size if stat.S_ISREG(status.st_mode) else 0
                    pending += [(*names, entry.name)] if stat.S_ISDIR(status.st_mode) else []
    return total
