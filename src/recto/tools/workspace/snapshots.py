"""Snapshots of workspaces before a turn changes them, stored with the server's data, without git.

Files ignored by `.gitignore` are not included. The manifest is written last, so a snapshot is complete or absent, and
the content of an unfinished snapshot is garbage. Files that have not changed since the newest manifest are not read
again.

An empty manifest marks a turn whose files could not be stored, or the newest snapshot dropped for age. It keeps a later
snapshot from being used for that turn.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast
from uuid import uuid4

from recto.config.run_settings import SnapshotSettings
from recto.conversation.json import EPOCH, Json, dump, load
from recto.errors import Conflict
from recto.tools.workspace.ripgrep import TooManyFiles
from recto.tools.workspace.visible_files import READ_FILE, FolderEntry, VisibleFiles, find_visible, open_inner
from recto.tools.workspace.workspace_files import MISSING_FOLDER, PRIVATE_FILE, PRIVATE_FOLDER, Workspace

KindOfChange: TypeAlias = Literal["created", "changed", "deleted"]
TURNS, UNDO, OBJECTS = "turns", "undo", "objects"
# Read a file again if it changed this many nanoseconds before the last scan or later: a second change within one clock
# tick would have the same time stamp.
TICK = 1_000_000_000
MICROSECOND = timedelta(microseconds=1)
# Extra snapshots to keep, so that garbage is not collected at every turn.
SLACK = 10
TOO_MANY = "The workspace has more than {most:,} files and folders, so none is kept. Leave some out by a .gitignore."


class FileState(NamedTuple):
    """A file or link. `digest` is None if its content was not stored; a link is stored in `target`.

    `stamp` is size, modification time, change time and inode. The same stamp means the same content.
    """

    mode: int
    stamp: tuple[int, int, int, int]
    digest: str | None = None
    target: str | None = None

    @property
    def is_stored(self) -> bool:
        """True if the file can be restored."""
        return self.digest is not None or self.target is not None


@dataclass(frozen=True, kw_only=True)
class FolderState:
    """All listed files of a workspace, by path. `time` is the time of the scan in nanoseconds.

    `folders` maps folders to modes; `stored_bytes` counts the bytes stored for the thread. `given_folder` is the folder
    if the operator gave it, else empty.
    """

    given_folder: str = ""
    time: int = 0
    files: Mapping[str, FileState] = field(default_factory=dict[str, FileState])
    folders: Mapping[str, int] = field(default_factory=dict[str, int])
    stored_bytes: int = 0

    def is_of(self, workspace: Workspace) -> bool:
        """Return True if this is a state of the workspace."""
        return self.given_folder == _given_folder(workspace)

    @property
    def digests(self) -> set[str]:
        """The digests of all stored contents."""
        return {one.digest for one in self.files.values() if one.digest}


NOTHING = FolderState()


@dataclass(frozen=True, kw_only=True)
class SnapshotTurn:
    """A turn whose files are stored: the id of its user message, and the time of its admission."""

    message: str
    admission_time: datetime

    @property
    def name(self) -> str:
        """The file name of the snapshot. Names sort in turn order. The id is hashed, because it may contain any
        characters.
        """
        return f"{(self.admission_time - EPOCH) // MICROSECOND:020}-{_digest(self.message)}"


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """The change of a file, and whether it can be reverted."""

    path: str
    change: KindOfChange
    is_kept: bool


def _given_folder(workspace: Workspace) -> str:
    return "" if workspace.is_own else str(workspace.folder)


def difference(old: FolderState, new: FolderState) -> list[FileChange]:
    """Return the changes of files between two states, by path."""
    changes = list[FileChange]()
    for path in sorted({*old.files, *new.files}):
        before, after = old.files.get(path), new.files.get(path)
        if before and after and is_same(before, after):
            continue
        change = "created" if before is None else "deleted" if after is None else "changed"
        is_kept = all(state.is_stored for state in (before, after) if state)
        changes.append(FileChange(path=path, change=change, is_kept=is_kept))
    return changes


def is_same(before: FileState, after: FileState) -> bool:
    """Return True if two states of a path have the same content and mode."""
    if before.mode != after.mode or before.target != after.target:
        return False
    if before.digest is None or after.digest is None:
        return before.stamp == after.stamp
    return before.digest == after.digest


def excluded_paths(workspace: Workspace) -> tuple[str, ...]:
    """Return the paths that no snapshot contains and no restore changes."""
    return (*workspace.hidden, *workspace.guarded)


@dataclass(frozen=True, kw_only=True)
class Snapshots:
    """The snapshots of all threads, each in its own folder in `root`. All methods block."""

    root: Path
    settings: SnapshotSettings = SnapshotSettings()

    def has_turn(self, thread: str, message: str) -> bool:
        """Return True if a snapshot was attempted for the turn of this user message."""
        return any(name.endswith(_digest(message)) for name in self._turns(thread))

    def has_any(self, thread: str) -> bool:
        """Return True if the thread has a snapshot of any turn."""
        return bool(self._turns(thread))

    def save_turn(self, workspace: Workspace, thread: str, turn: SnapshotTurn) -> FolderState:
        """Store the files before a turn changes them. If that fails, mark the turn, so that no later snapshot is used
        for it.
        """
        name = f"{TURNS}/{turn.name}"
        try:
            return self._keep(workspace, thread, name)
        except Exception:
            with suppress(OSError):
                self._mark_missing(thread, name)
            raise

    def save_undo(self, workspace: Workspace, thread: str, before: FolderState = NOTHING) -> tuple[str, FolderState]:
        """Store the files before a restore replaces them, and return the snapshot's name and state. Keep the contents
        of `before`.
        """
        name = uuid4().hex
        return name, self._keep(workspace, thread, f"{UNDO}/{name}", before)

    def of_turn(self, thread: str, turn: SnapshotTurn) -> FolderState | None:
        """Return the files as they were before a turn.

        A turn without a snapshot changed no file, so the next later snapshot has the same state. None if no turn since
        then changed a file, or if the snapshots are gone.
        """
        names = self._turns(thread)
        own = [name for name in names if name.endswith(_digest(turn.message))]
        later = [name for name in names if name >= turn.name]
        return self._read(thread, f"{TURNS}/{(own or later)[0]}") if own or later else None

    def of_undo(self, thread: str, name: str) -> FolderState | None:
        """Return the files as they were before a restore."""
        return self._read(thread, f"{UNDO}/{name}") if name.isalnum() else None

    def state(self, workspace: Workspace, thread: str) -> FolderState:
        """Return the current files without storing them."""
        return self._look(workspace, self._newest(thread), lambda content: hashlib.sha256(content).hexdigest())

    def content(self, thread: str, digest: str) -> bytes:
        """Return the content with this digest. Raise OSError if it is missing or damaged."""
        path = self._folder(thread) / OBJECTS / digest[:2] / digest
        with suppress(zlib.error):
            content = zlib.decompress(path.read_bytes())
            if hashlib.sha256(content).hexdigest() == digest:
                return content
        raise OSError(errno.EIO, "What was kept is damaged", str(path))

    def _keep(self, workspace: Workspace, thread: str, name: str, before: FolderState = NOTHING) -> FolderState:
        last = self._newest(thread)
        store = _Objects(self, thread, last.stored_bytes, {*last.digests, *before.digests})
        state = self._look(workspace, last, store.add)
        state = replace(state, stored_bytes=store.stored_bytes)
        files: dict[str, Json] = {
            _as_text(path): [one.mode, *one.stamp, one.digest, _as_text(one.target) if one.target else None]
            for path, one in state.files.items()
        }
        row: dict[str, Json] = {
            "given": _as_text(state.given_folder),
            "time": state.time,
            "held": state.stored_bytes,
            "folders": {_as_text(path): mode for path, mode in state.folders.items()},
            "files": files,
        }
        _put(self._folder(thread), self._folder(thread) / name, zlib.compress(dump(row), 1))
        if self._drop_old(thread, self.settings.turns + SLACK):
            self._collect(thread, store.used_digests)
        return state

    def _look(self, workspace: Workspace, last: FolderState, keep: Callable[[bytes], str | None]) -> FolderState:
        if workspace.is_gone:
            raise Conflict(MISSING_FOLDER)
        look = _Scan(last if last.is_of(workspace) else NOTHING, keep, self.settings)
        with suppress(FileNotFoundError), open_inner(str(workspace.folder)) as top:
            try:
                seconds, most = workspace.search.seconds, self.settings.files
                visible = find_visible(workspace.folder, excluded_paths(workspace), seconds, most=most)
            except TooManyFiles as error:
                raise Conflict(TOO_MANY.format(most=self.settings.files)) from error
            except OSError as error:
                raise Conflict(str(error)) from error
            look.walk(top, visible)
        return replace(look.state, given_folder=_given_folder(workspace))

    def _folder(self, thread: str) -> Path:
        return self.root / thread

    def _turns(self, thread: str) -> list[str]:
        return _names(self._folder(thread) / TURNS)

    def _newest(self, thread: str) -> FolderState:
        """Return the newest stored state of any kind."""
        folder = self._folder(thread)
        paths = [folder / part / name for part in (TURNS, UNDO) for name in _names(folder / part)]
        paths = [path for path in paths if path.stat().st_size]
        newest = max(paths, key=lambda path: path.stat().st_mtime_ns, default=None)
        return (self._read(thread, f"{newest.parent.name}/{newest.name}") if newest else None) or NOTHING

    def _read(self, thread: str, name: str) -> FolderState | None:
        try:
            row = load(zlib.decompress((self._folder(thread) / name).read_bytes()))
            values = cast("Mapping[str, object]", row)
            files = cast("Mapping[str, tuple[int, int, int, int, int, str | None, str | None]]", values["files"])
            folders = cast("Mapping[str, int]", values["folders"])
            return FolderState(
                # Manifests without this field are older. They count as the thread's own and are never restored into a
                # given folder.
                given_folder=_as_path(cast("str", values.get("given", ""))),
                time=cast("int", values["time"]),
                stored_bytes=cast("int", values["held"]),
                folders={_as_path(path): mode for path, mode in folders.items()},
                files={
                    _as_path(path): FileState(
                        mode, (size, changed, stamped, inode), digest, target and _as_path(target)
                    )
                    for path, (mode, size, changed, stamped, inode, digest, target) in files.items()
                },
            )
        except (OSError, zlib.error, ValueError):
            return None

    def _mark_missing(self, thread: str, name: str) -> None:
        _put(self._folder(thread), self._folder(thread) / name, b"")

    def free_space(self, thread: str, used_digests: Collection[str]) -> int:
        """Delete old snapshots and unused contents, except `used_digests`. Return the remaining bytes."""
        self._drop_old(thread, self.settings.turns)
        return self._collect(thread, used_digests)

    def _drop_old(self, thread: str, most: int) -> bool:
        """Keep the newest snapshots of each kind. Returns True if any was deleted."""
        undo = self._folder(thread) / UNDO
        undos = sorted(_names(undo), key=lambda name: (undo / name).stat().st_mtime_ns)
        dropped = list[Path]()
        for part, names in ((TURNS, self._turns(thread)), (UNDO, undos)):
            if len(names) <= most:
                continue
            old = [self._folder(thread) / part / name for name in names[: -self.settings.turns]]
            if part == TURNS:
                self._mark_missing(thread, f"{part}/{old.pop().name}")
            dropped += old
        for path in dropped:
            path.unlink(missing_ok=True)
        return bool(dropped)

    def _collect(self, thread: str, used_digests: Collection[str]) -> int:
        """Delete contents that neither a snapshot nor `used_digests` refers to. Return the remaining bytes."""
        folder, digests, stored_bytes = self._folder(thread), set(used_digests), 0
        for name in (f"{part}/{name}" for part in (TURNS, UNDO) for name in _names(folder / part)):
            digests |= (self._read(thread, name) or NOTHING).digests
        for inner in _names(folder / OBJECTS):
            for name in _names(folder / OBJECTS / inner):
                path = folder / OBJECTS / inner / name
                if name in digests:
                    stored_bytes += path.stat().st_size
                else:
                    path.unlink(missing_ok=True)
        return stored_bytes


class _Objects:
    """Writer of a thread's file contents. It stores each content once, up to the byte limit, and frees space at most
    once.
    """

    def __init__(self, snapshots: Snapshots, thread: str, stored_bytes: int, used_digests: set[str]) -> None:
        self._snapshots = snapshots
        self._thread = thread
        self._has_made_room = False
        self.stored_bytes = stored_bytes
        self.used_digests = used_digests

    def add(self, content: bytes) -> str | None:
        digest = hashlib.sha256(content).hexdigest()
        folder = self._snapshots.root / self._thread
        path = folder / OBJECTS / digest[:2] / digest
        # Reuse stored content if it is intact. Damaged content is written again.
        with suppress(OSError):
            self._snapshots.content(self._thread, digest)
            self.used_digests.add(digest)
            return digest
        packed, most = zlib.compress(content, 1), self._snapshots.settings.thread_bytes
        size = len(packed)
        if self.stored_bytes + size > most and not self._has_made_room:
            self._has_made_room = True
            self.stored_bytes = self._snapshots.free_space(self._thread, self.used_digests)
        if self.stored_bytes + size > most:
            return None
        _put(folder, path, packed)
        self.stored_bytes += size
        self.used_digests.add(digest)
        return digest


class _Scan:
    """A scan of a workspace. Files with the same stamp as in the last state are not read again.

    Reading starts after the scan. A file that is gone by then, or unreadable, is left out.
    """

    def __init__(self, last: FolderState, keep: Callable[[bytes], str | None], settings: SnapshotSettings) -> None:
        self._last = last
        self._keep = keep
        self._most, self._most_files = settings.file_bytes, settings.files
        self._files: dict[str, FileState] = {}
        self._folders: dict[str, int] = {}
        self._unread: dict[str, None] = {}
        self._time = time.time_ns()

    @property
    def state(self) -> FolderState:
        files = {path: one for path, one in self._files.items() if path not in self._unread}
        return FolderState(time=self._time, files=files if self._unread else self._files, folders=self._folders)

    def walk(self, top: int, visible: VisibleFiles) -> None:
        for entry in visible.entries(top):
            if len(self._files) + len(self._folders) >= self._most_files:
                raise Conflict(TOO_MANY.format(most=self._most_files))
            path, status, mode = entry.path, entry.stat, stat.S_IMODE(entry.stat.st_mode)
            if entry.is_file:
                self._files[path] = self._file(path, status, mode)
            elif entry.is_folder:
                self._folders[path] = mode
            elif entry.is_link:
                with suppress(OSError):
                    self._files[path] = FileState(0, (0, 0, 0, 0), target=os.readlink(entry.name, dir_fd=entry.folder))
        # Read files only after all are counted, so that none is stored if there are too many.
        for folder in dict.fromkeys([tuple(path.split("/")[:-1]) for path in self._unread]):
            for entry in visible.entries(top, under=folder, depth=1):
                self._read(entry)

    def _file(self, path: str, status: os.stat_result, mode: int) -> FileState:
        stamp, before = _stamp(status), self._last.files.get(path)
        is_old = max(stamp[1:3]) < self._last.time - TICK
        if before and before.digest and before.stamp == stamp and is_old:
            return before if before.mode == mode else before._replace(mode=mode)
        if stamp[0] <= self._most:
            self._unread[path] = None
        return FileState(mode, stamp)

    def _read(self, entry: FolderEntry) -> None:
        if entry.path not in self._unread or not entry.is_file:
            return
        with suppress(OSError):
            with os.fdopen(os.open(entry.name, READ_FILE, dir_fd=entry.folder), "rb") as file:
                status = os.fstat(file.fileno())
                content = file.read(self._most + 1)
            digest = None if len(content) > self._most else self._keep(content)
            self._files[entry.path] = FileState(stat.S_IMODE(entry.stat.st_mode), _stamp(status), digest=digest)
            del self._unread[entry.path]


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _digest(message: str) -> str:
    return hashlib.sha256(message.encode(errors="surrogatepass")).hexdigest()[:32]


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder))
    except FileNotFoundError:
        return []


def _put(scratch: Path, path: Path, content: bytes) -> None:
    """Write a file completely or not at all. The workspace sweep removes unfinished files."""
    part = scratch / f".recto-{uuid4().hex}.part"
    try:
        _write(part, content)
        part.replace(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        _write(part, content)
        part.replace(path)


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE), "wb") as file:
        file.write(content)


def _as_text(path: str) -> str:
    """Encode a path that may not be valid text, without loss."""
    return path if path.isascii() else path.encode(errors="surrogateescape").decode("latin-1")


def _as_path(text: str) -> str:
    return text if text.isascii() else os.fsdecode(text.encode("latin-1"))
