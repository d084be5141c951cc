"""Files in a workspace, a thread's own folder. No path leads out of it: not by `..`, not by links, not in a race.

Every folder on the way is opened by its name in the one before, and never through a link; what was opened stays what
it is, whatever is put in its place meanwhile.
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
LONGEST_PATH = 1_024
MOST_FOLDERS = 32
SHOWN = 100
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What others may do with new files: nothing, or what this process lets them do with all it makes.
PRIVATE, SHARED = 0o077, 0o000
NEW_FOLDER_MODE, NEW_FILE_MODE = 0o777, 0o666
PRIVATE_FOLDER, PRIVATE_FILE = NEW_FOLDER_MODE & ~PRIVATE, NEW_FILE_MODE & ~PRIVATE
PERMISSIONS = 0o777
TURN_SECONDS, TURN_TRIES = 1.0, 200
# Is told what is in a file's place right before another takes it (None: nothing), and raises where it is not to.
PlaceCheck: TypeAlias = Callable[[int, os.stat_result | None], None]
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
GIT = ".git"
# What a file is called in the workspace until it is finished.
PART = re.compile(r"\.recto-[0-9a-f]{32}\.part")
FULL = (
    "{path} does not fit: the workspace holds {held:,} bytes besides it and may hold {most:,}, so {room:,} are left, "
    "and the file has more. Put it in the place of a file that is not needed any more, or tell the user."
)
EXISTS = "{path} is there already, and was not changed. Change it with filesystem-edit, or choose another path."
KEPT = "{path} is kept as it is: it can be read where it is seen, and not changed. Tell the user what to change there."
GONE = "The folder to work in is not there any more. Nothing was done. Tell the user to put it back."


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The folder a thread works in. One of its own may hold `most_bytes` (0: no limit), and ends with the thread.

    One that the operator gave is shared by threads. In it the server's own folders may lie: tools do not see what is
    `hidden`, and change nothing of what is `guarded`; both are paths in it. What is `private` is not to be seen
    anywhere on this machine. `search` says what searches may take, `limits` what reads and edits may.
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
        """Whether it is not there, and nobody is to make it: one that was given."""
        return not self.is_own and not self.folder.is_dir()


def refuse_change(names: tuple[str, ...], workspace: Workspace) -> None:
    """Raise ToolError for a place that tools change nothing of: guarded, or what the server keeps for itself."""
    if ".." in names:
        raise ToolError(f"{'/'.join(names)} cannot be made: a link on the way leads through what is not there.")
    # Git runs what it finds there, for whoever uses it next. Commands may use it themselves.
    is_of_git = not workspace.is_own and any(name.lower() == GIT for name in names)
    places = [tuple(kept.split("/")) for kept in (*workspace.guarded, *workspace.hidden)]
    if is_of_git or any(names[: len(parts)] == parts for parts in places):
        raise ToolError(KEPT.format(path="/".join(names)))


@dataclass(frozen=True, kw_only=True)
class WrittenFile:
    """A file that was written: its path in the workspace, and whether another was there before."""

    path: str
    size: int
    is_replaced: bool


def path_parts(path: str) -> tuple[str, ...]:
    """The names a path in a workspace consists of, the file's last. Raises ToolError for one that is none."""
    shown = f"The path {path[:SHOWN]!r}"
    check_text(path, shown)
    if path.startswith("/"):
        raise ToolError(f"{shown} begins with /. Paths are relative to the workspace, such as data/table.csv.")
    if "\\" in path:
        raise ToolError(f"{shown} has a backslash. Put / between folders.")
    names = path.split("/")
    if ".." in names:
        raise ToolError(f"{shown} has `..` in it. Name a place inside the workspace.")
    if names[-1] in ("", "."):
        raise ToolError(f"{shown} names no file. Say what the file is to be called, such as data/table.csv.")
    parts = tuple(name for name in names if name not in ("", "."))
    check_names(parts, shown)
    return parts


def check_text(path: str, shown: str, most: int = LONGEST_PATH) -> None:
    """Raise ToolError for characters no path has, and for too many of them."""
    if CONTROLS.search(path):
        raise ToolError(f"{shown} has control characters. Leave them out.")
    if _bytes_in(path) > most:
        raise ToolError(f"{shown} ... is too long: {most} bytes are allowed.")


def check_names(names: tuple[str, ...], shown: str) -> None:
    """Raise ToolError for a name that is too long, and for too many of them."""
    if any(_bytes_in(name) > LONGEST_NAME for name in names):
        raise ToolError(f"{shown} ... has a name that is too long: {LONGEST_NAME} bytes are allowed.")
    if len(names) > MOST_FOLDERS + 1:
        raise ToolError(f"{shown} ... is {len(names) - 1} folders deep, {MOST_FOLDERS} are allowed.")


def _bytes_in(name: str) -> int:
    try:
        return len(name.encode())
    except UnicodeEncodeError as error:
        raise ToolError("The path has half a character in it. Write it again.") from error


class NewFile:
    """A file on its way into a workspace: there whole once it is finished, or not at all.

    Every step blocks, may be taken in another thread than the one before, and raises ToolError where it cannot be
    taken. Who breaks off abandons it, whatever step a thread is at: nothing is left of it, and no new folder.

    What is in the workspace is counted as it begins, so where there is a limit one file is added at a time. In a
    thread's own folder others may do nothing with it. One that takes the place of another, `like` it, has its
    permissions and its owner.
    """

    def __init__(self, workspace: Workspace, parts: tuple[str, ...], *, like: os.stat_result | None = None) -> None:
        self._workspace = workspace
        self._parts = parts
        self._most = workspace.most_bytes
        self._withheld = PRIVATE if workspace.is_own else SHARED
        self._like = like
        self._held = 0
        self._name = f".recto-{uuid4().hex}.part"
        self._top: int | None = None
        self._file: BinaryIO | None = None
        self._is_over = False
        self._lock = Lock()

    def begin(self) -> None:
        """Make the workspace where it is missing. A place where no file can be is refused before any is written."""
        with self._lock, self._as_tool_errors():
            if self._is_over:
                return
            refuse_change(self._parts, self._workspace)
            self._top = open_root(self._workspace)
            replaced = _look_ahead(self._top, self._parts)
            if self._most:
                self._held = bytes_in(self._top) - replaced
            descriptor = os.open(self._name, NEW_FILE, NEW_FILE_MODE & ~self._withheld, dir_fd=self._top)
            self._file = os.fdopen(descriptor, "wb")
            if self._like is not None:
                _make_alike(descriptor, self._like)

    def write(self, piece: bytes) -> None:
        """Add to the file. More than the workspace may hold is not written."""
        with self._lock, self._as_tool_errors():
            if self._file is not None:
                self._refuse_too_much(self._file.tell() + len(piece))
                self._file.write(piece)

    def finish(self, check: PlaceCheck | None = None, *, is_new: bool = False) -> WrittenFile:
        """Put the file in its place, in folders made where they are missing. `check` may still refuse.

        One that `is_new` takes the place of no other, whenever that comes.
        """
        with self._lock, self._as_tool_errors():
            if self._file is None or self._top is None:
                raise ToolError(f"{'/'.join(self._parts)} was not written: that was broken off.")
            size = self._file.tell()
            self._file.close()
            with open_folder(self._top, self._parts[:-1], make=NEW_FOLDER_MODE & ~self._withheld) as folder:
                if check is not None:
                    _wait_for_turn(folder)
                found = _file_there(folder, self._parts)
                if check is not None:
                    check(folder, found)
                if not (is_new and self._is_linked(self._top, folder)):
                    os.rename(self._name, self._parts[-1], src_dir_fd=self._top, dst_dir_fd=folder)
        return WrittenFile(path="/".join(self._parts), size=size, is_replaced=found is not None)

    def _is_linked(self, top: int, folder: int) -> bool:
        """Give the file its name where that is free; its old one goes when it is abandoned."""
        try:
            os.link(self._name, self._parts[-1], src_dir_fd=top, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            # Some file systems know no second names: there the look that was taken right before has to do.
            if error.errno not in NO_LINKS:
                raise
            return False
        return True

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

    def _refuse_too_much(self, size: int) -> None:
        if self._most and self._held + size > self._most:
            room = max(self._most - self._held, 0)
            path = "/".join(self._parts)
            raise ToolError(FULL.format(path=path, held=self._held, most=self._most, room=room))

    @contextmanager
    def _as_tool_errors(self) -> Generator[None]:
        """What the system says against it, without the paths of this machine."""
        try:
            yield
        except FileExistsError as error:
            raise ToolError(EXISTS.format(path="/".join(self._parts))) from error
        except OSError as error:
            raise ToolError(f"{'/'.join(self._parts)} cannot be written: {error.strerror}.") from error


def _wait_for_turn(folder: int) -> None:
    """Be the only one of all processes that looks at a file in this folder and then replaces it.

    The turn is over when the folder is closed. Who holds it for long is no file being put in its place: after a while
    nobody waits for it any more.
    """
    for _ in range(TURN_TRIES):
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(TURN_SECONDS / TURN_TRIES)


def _make_alike(descriptor: int, like: os.stat_result) -> None:
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        # Only who may give files away keeps the owner.
        with suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, like.st_mode & PERMISSIONS)


def open_root(workspace: Workspace) -> int:
    """The workspace. A thread's own is made where it is missing, with what it is in, for its owner alone."""
    refuse_gone(workspace)
    root = workspace.folder
    missing = [folder for folder in (root, *root.parents) if workspace.is_own and not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    return os.open(root, FOLDER)


def refuse_gone(workspace: Workspace) -> None:
    """Raise ToolError where a folder that was given is not there any more. One is never made in its place."""
    if workspace.is_gone:
        raise ToolError(GONE)


@contextmanager
def open_folder(top: int, names: tuple[str, ...], *, make: int | None = None) -> Generator[int]:
    """The folder of these names in an open one; missing ones are made, with this mode, or raise FileNotFoundError."""
    folder = os.dup(top)
    try:
        for depth in range(len(names)):
            inner = _inner(folder, names[: depth + 1], make=make)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _inner(folder: int, names: tuple[str, ...], *, make: int | None) -> int:
    if make is not None:
        with suppress(FileExistsError):
            os.mkdir(names[-1], make, dir_fd=folder)
    try:
        return os.open(names[-1], FOLDER, dir_fd=folder)
    except OSError as error:
        # A link is the one or the other, by the system's taste.
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise ToolError(f"{'/'.join(names)} is no folder, or only a link to one. Choose another path.") from error


def _look_ahead(top: int, parts: tuple[str, ...]) -> int:
    """Refuse a bad place before anything is written. Returns the bytes of the file that is there now."""
    with suppress(FileNotFoundError), open_folder(top, parts[:-1]) as folder:
        found = _file_there(folder, parts)
        return found.st_size if found else 0
    return 0


def _file_there(folder: int, parts: tuple[str, ...]) -> os.stat_result | None:
    """The file that is there already, None where there is none. Anything else there is refused."""
    try:
        found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "no plain file"
        raise ToolError(f"{'/'.join(parts)} is {what}. Choose another path.")
    return found


def bytes_in(top: int) -> int:
    """The bytes of all files in an open folder and in the folders in it. Links are not followed, and count nothing."""
    total, left = 0, list[tuple[str, ...]]([()])
    while left:
        names = left.pop()
        # What is gone by now, or has become a link, has nothing to count.
        with suppress(FileNotFoundError, ToolError), open_folder(top, names) as folder:
            found = _looked_through(folder)
            total += found.size
            left += [(*names, name) for name in found.folders]
    return total


@dataclass(frozen=True, kw_only=True)
class _Looked:
    """What is in one folder: the bytes of its files, and the folders in it by name."""

    size: int
    folders: tuple[str, ...]


def _looked_through(folder: int) -> _Looked:
    size, folders = 0, list[str]()
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                size += found.st_size if stat.S_ISREG(found.st_mode) else 0
                folders += [entry.name] if stat.S_ISDIR(found.st_mode) else []
    return _Looked(size=size, folders=tuple(folders))
