"""Restore of a workspace's files from a snapshot, and copies of workspaces for forks.

Each file is restored completely or not at all. Ignored, hidden, guarded and concurrently changed files stay untouched,
and so does a file whose current state was not stored. No path leads out of the workspace, even if a folder is replaced
by a link.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from recto.errors import TooLarge, ToolError
from recto.tools.workspace import workspace_files
from recto.tools.workspace.snapshots import FileChange, FileState, FolderState, difference, excluded_paths
from recto.tools.workspace.visible_files import (
    DEEPEST,
    GITIGNORE,
    GITIGNORE_BYTES,
    READ_FILE,
    is_excluded,
    open_inner,
    visible_paths,
)
from recto.tools.workspace.workspaces import incomplete_folder

LOGGER = logging.getLogger("recto.tools")
AT_ONCE = 2**20
TOO_LARGE = "{folder} holds {size:,} bytes, and a copy may have {most:,}."


@dataclass(frozen=True, kw_only=True)
class RestoreResult:
    """The restored paths, and those that could not be restored."""

    restored: tuple[str, ...] = ()
    failed_paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RestorePlan:
    """A restore from the state `now` to the state `before`. `content` returns the bytes stored under a digest."""

    before: FolderState
    now: FolderState
    content: Callable[[str], bytes]
    paths: Collection[str] | None = None

    @property
    def changes(self) -> list[FileChange]:
        """The changes to revert."""
        changes = difference(self.before, self.now)
        return [one for one in changes if self.paths is None or one.path in self.paths]


def restore(workspace: workspace_files.Workspace, restoring: RestorePlan) -> RestoreResult:
    """Restore changed files and remove new ones. Blocks."""
    work = _Restore(restoring=restoring, workspace=workspace, top=workspace_files.open_root(workspace))
    try:
        work.run()
    # Report the result after any error, because some files may have been restored already.
    except Exception:
        LOGGER.exception("Files of %s could not all be put back", workspace.folder)
    finally:
        os.close(work.top)
    restored = frozenset(work.restored)
    failed_paths = [one.path for one in restoring.changes if one.path not in restored]
    return RestoreResult(restored=tuple(sorted(restored)), failed_paths=tuple(failed_paths))


@dataclass(kw_only=True)
class _Restore:
    """A restore in progress, in an open folder."""

    restoring: RestorePlan
    workspace: workspace_files.Workspace
    top: int
    restored: list[str] = field(default_factory=list[str])

    def run(self) -> None:
        """Remove new files first, so that a file can replace a folder, and a folder a file.

        A file that was ignored at the time of the snapshot was not stored, so it is not new. A file that is ignored now
        was not scanned, so it counts as missing.
        """
        excluded = excluded_paths(self.workspace)
        changes = [one for one in self.restoring.changes if one.is_kept and not is_excluded(one.path, excluded)]
        created = [one for one in changes if one.change == "created"]
        visible = self._visible_then([one.path for one in created])
        new = [one for one in created if one.path in visible]
        self._restore_all(new)
        before, now, paths = self.restoring.before.folders, self.restoring.now.folders, self.restoring.paths
        # New empty folders, deepest first; with `paths`, only parents of removed files.
        parents = {parent.as_posix() for one in new for parent in Path(one.path).parents}
        new_folders = now.keys() - before.keys() if paths is None else (now.keys() - before.keys()) & parents
        for path in sorted(new_folders, key=lambda path: path.count("/"), reverse=True):
            *folders, name = path.split("/")
            with suppress(OSError, ToolError), workspace_files.open_folder(self.top, tuple(folders)) as folder:
                os.rmdir(name, dir_fd=folder)
        # Folders and their modes, empty ones too.
        for path in sorted(path for path in before if paths is None and now.get(path) != before[path]):
            with suppress(OSError, ToolError):
                self._make_folder(path.split("/"))
                with workspace_files.open_folder(self.top, tuple(path.split("/"))) as folder:
                    os.fchmod(folder, before[path])
        self._restore_all([one for one in changes if one.change != "created"])

    def _visible_then(self, paths: Sequence[str]) -> Collection[str]:
        """Return the paths that the snapshot's `.gitignore` files do not ignore. An unreadable one ignores its whole
        folder.
        """
        rules = dict[str, bytes]()
        for path, state in self.restoring.before.files.items():
            if path.rpartition("/")[2] == GITIGNORE and state.target is None:
                try:
                    rules[path] = self.restoring.content(state.digest or "")[:GITIGNORE_BYTES]
                except OSError:
                    rules[path] = b"*"
        return visible_paths(paths, rules, self.workspace.search.seconds)

    def _restore_all(self, changes: Iterable[FileChange]) -> None:
        for one in changes:
            if self._restore_file(one):
                self.restored.append(one.path)

    def _restore_file(self, one: FileChange) -> bool:
        *folders, name = one.path.split("/")
        before, now = self.restoring.before.files.get(one.path), self.restoring.now.files.get(one.path)
        try:
            if before is not None:
                for depth in range(1, len(folders) + 1):
                    self._make_folder(folders[:depth])
            with workspace_files.open_folder(self.top, tuple(folders)) as folder:
                # Skip a file that somebody else changed, because no snapshot has its content.
                if not _is_unchanged(folder, name, now):
                    return False
                if before is None:
                    os.unlink(name, dir_fd=folder)
                else:
                    self._write(before, folder, name)
        except (OSError, ToolError):
            return False
        return True

    def _make_folder(self, names: list[str]) -> None:
        mode = self.restoring.before.folders.get("/".join(names), workspace_files.PRIVATE_FOLDER)
        with workspace_files.open_folder(self.top, tuple(names[:-1])) as folder, suppress(FileExistsError):
            os.mkdir(names[-1], workspace_files.PRIVATE_FOLDER, dir_fd=folder)
            with workspace_files.open_folder(folder, (names[-1],)) as new_folder:
                os.fchmod(new_folder, mode)

    def _write(self, before: FileState, folder: int, name: str) -> None:
        part = f".recto-{uuid4().hex}.part"
        try:
            if before.target is not None:
                os.symlink(before.target, part, dir_fd=self.top)
            else:
                new = os.open(part, workspace_files.NEW_FILE, workspace_files.PRIVATE_FILE, dir_fd=self.top)
                with os.fdopen(new, "wb") as file:
                    file.write(self.restoring.content(before.digest or ""))
                    os.fchmod(file.fileno(), before.mode)
            os.rename(part, name, src_dir_fd=self.top, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=self.top)


def _is_unchanged(folder: int, name: str, now: FileState | None) -> bool:
    """Return True if the file is still as it was when its state was stored."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return now is None
    if now is None:
        return False
    if now.target is not None:
        return stat.S_ISLNK(status.st_mode) and os.readlink(name, dir_fd=folder) == now.target
    stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return stat.S_ISREG(status.st_mode) and stamp == now.stamp


def copy_folder(source: Path, target: Path, *, most: int = 0, finish: Callable[[Path], None] | None = None) -> None:
    """Copy a folder with all files, links and ignored files. Blocks; no link is followed.

    Create `target` complete or not at all: `finish` receives the copy under its temporary name, before the rename.
    Raise TooLarge if the files exceed `most` bytes (0: no limit). Holes of sparse files count, because the copy fills
    them.
    """
    with open_inner(str(source)) as old:
        size = workspace_files.bytes_in(old)
        if 0 < most < size:
            raise TooLarge(TOO_LARGE.format(folder=source, size=size, most=most))
        with incomplete_folder(target) as part:
            with open_inner(str(part)) as new:
                _copy_all(old, new, DEEPEST)
            if finish:
                finish(part)


def _copy_all(old: int, new: int, depth: int) -> None:
    for name in os.listdir(old) if depth else ():
        # Skip entries that are gone or have changed their kind.
        with suppress(OSError):
            mode_bits = os.stat(name, dir_fd=old, follow_symlinks=False).st_mode
            mode = stat.S_IMODE(mode_bits)
            if stat.S_ISLNK(mode_bits):
                os.symlink(os.readlink(name, dir_fd=old), name, dir_fd=new)
            elif stat.S_ISREG(mode_bits):
                _copy_file(old, new, name, mode)
            elif stat.S_ISDIR(mode_bits):
                os.mkdir(name, workspace_files.PRIVATE_FOLDER, dir_fd=new)
                with open_inner(name, old) as inner, open_inner(name, new) as copied:
                    _copy_all(inner, copied, depth - 1)
                    os.fchmod(copied, mode)


def _copy_file(old: int, new: int, name: str, mode: int) -> None:
    with (
        os.fdopen(os.open(name, READ_FILE, dir_fd=old), "rb") as content,
        os.fdopen(os.open(name, workspace_files.NEW_FILE, workspace_files.PRIVATE_FILE, dir_fd=new), "wb") as copied,
    ):
        # Copy up to the initial size, because a growing file might never end.
        remaining = os.fstat(content.fileno()).st_size
        while remaining and (some := content.read(min(remaining, AT_ONCE))):
            remaining -= copied.write(some)
        os.fchmod(copied.fileno(), mode)
