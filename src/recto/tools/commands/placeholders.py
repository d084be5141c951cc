"""Placeholders for missing guarded files while commands run, so that no command creates them.

A sandbox can mount only on existing places, so they are really created. Notes on disk come first: a server removes what
a killed one left.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import cast
from uuid import uuid4

from recto.errors import ToolError
from recto.tools.commands.masks import guarded_places
from recto.tools.workspace import workspace_files
from recto.tools.workspace.visible_files import READ_FILE
from recto.tools.workspace.workspaces import Workspace

# Files of git's. An empty config is harmless, and so is a repository that names itself as its common folder.
FILES = {".git/config": b"", ".git/commondir": b".\n"}
BEFORE = (
    "Something that is at work in this folder began before {place} was there, and is not kept from changing it, so no "
    "command is run beside it. End it with terminal-jobs, or wait until it has ended."
)


class Placeholders:
    """Empty files and folders that exist as long as a command runs in their workspace."""

    def __init__(self, notes: Path | None = None) -> None:
        self._lock = Lock()
        # For each running command of a folder, the places it cannot change there.
        self._running: dict[Path, list[Sequence[str]]] = {}
        self._names: dict[Path, list[str]] = {}
        self._notes = _Notes(notes) if notes else None

    @contextmanager
    def create_missing(self, workspace: Workspace) -> Generator[Workspace]:
        """Create all missing guarded places inside the context and yield the workspace with the places that are
        guarded.

        Raises ToolError if a link is in the way, or if a running command could put one there.
        """
        with self._lock:
            others = self._running.setdefault(workspace.folder, [])
            try:
                # Check before anything is created, then list what exists.
                guarded_places(workspace)
                self._make(workspace)
                guarded = guarded_places(workspace)
                # Reject a start beside a command that could replace an unguarded path by a link during the mount.
                for place in guarded:
                    if not all(any(f"{place}/".startswith(f"{one}/") for one in other) for other in others):
                        raise ToolError(BEFORE.format(place=place))
            except (OSError, ToolError):
                self._clear(workspace)
                raise
            others.append(guarded)
        try:
            yield replace(workspace, guarded=guarded)
        finally:
            with self._lock:
                self._running[workspace.folder].remove(guarded)
                self._clear(workspace)

    def _make(self, workspace: Workspace) -> None:
        placeholders = self._names.setdefault(workspace.folder, [])
        missing = [place for place in workspace.guarded if not os.path.lexists(workspace.folder / place)]
        # A new, empty git folder gets none: `git init` may be running. A path below a file cannot be listed.
        with suppress(OSError):
            if not any((workspace.folder / workspace_files.GIT).iterdir()):
                missing = [place for place in missing if not place.startswith(f"{workspace_files.GIT}/")]
        if missing and self._notes:
            self._notes.write({**self._names, workspace.folder: [*placeholders, *missing]})
        placeholders += [place for place in missing if _make(workspace, place)]

    def _clear(self, workspace: Workspace) -> None:
        # Removing a mounted placeholder would end its protection.
        if self._running[workspace.folder]:
            return
        del self._running[workspace.folder]
        placeholders = self._names.pop(workspace.folder, [])
        for place in placeholders:
            _remove(workspace, place)
        if placeholders and self._notes:
            self._notes.write(self._names)


class _Notes:
    """The placeholders of this process in a file that stays locked while it lives. Only its first line counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None

    def write(self, places_by_folder: Mapping[Path, Sequence[str]]) -> None:
        """Store what exists or is about to."""
        if self._file is None:
            self._folder.mkdir(mode=workspace_files.PRIVATE_FOLDER, parents=True, exist_ok=True)
            self._file = os.open(
                self._folder / f"{uuid4().hex}.json", workspace_files.NEW_FILE, workspace_files.PRIVATE_FILE
            )
            fcntl.flock(self._file, fcntl.LOCK_EX)
        notes = {str(folder): list(places) for folder, places in places_by_folder.items() if places}
        line = json.dumps(notes).encode() + b"\n"
        # In this order one of the two versions is complete whenever the process is killed.
        os.pwrite(self._file, line, 0)
        os.ftruncate(self._file, len(line))
        os.fsync(self._file)


def remove_leftovers(notes: Path) -> int:
    """Remove the placeholders of dead processes, and count them. A note stays as long as its folder is missing."""
    count = 0
    for path in sorted(notes.glob("*.json")):
        # The process that holds the lock is alive.
        with suppress(OSError, ValueError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            notes_by_folder = cast("dict[str, list[str]]", json.loads(file.readline() or b"{}"))
            there = {folder: places for folder, places in notes_by_folder.items() if Path(folder).is_dir()}
            leftovers = [
                (Workspace(folder=Path(folder), is_own=False), one) for folder in there for one in there[folder]
            ]
            for workspace, place in leftovers:
                _remove(workspace, place)
            count += len(leftovers)
            if len(there) == len(notes_by_folder):
                path.unlink()
    return count


def _make(workspace: Workspace, place: str) -> bool:
    """Create a placeholder and return True. Without a parent folder none is needed."""
    *folders, name = place.split("/")
    with suppress(OSError, ToolError):
        with _open_parent(workspace, tuple(folders)) as folder:
            content = _content(place)
            if content is None:
                os.mkdir(name, workspace_files.PRIVATE_FOLDER, dir_fd=folder)
            else:
                with os.fdopen(
                    os.open(name, workspace_files.NEW_FILE, workspace_files.PRIVATE_FILE, dir_fd=folder), "wb"
                ) as file:
                    file.write(content)
        return True
    return False


def _remove(workspace: Workspace, place: str) -> None:
    """Remove a placeholder, unless somebody replaced it: ours is empty and private to its owner."""
    *folders, name = place.split("/")
    with suppress(OSError, ToolError), _open_parent(workspace, tuple(folders)) as folder:
        content, mode = (
            _content(place),
            os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & workspace_files.PERMISSIONS,
        )
        if content is None and mode == workspace_files.PRIVATE_FOLDER:
            os.rmdir(name, dir_fd=folder)
        elif content is not None and mode == workspace_files.PRIVATE_FILE:
            with os.fdopen(os.open(name, READ_FILE, dir_fd=folder), "rb") as file:
                is_ours = file.read(len(content) + 1) == content
            if is_ours:
                os.unlink(name, dir_fd=folder)


def _content(place: str) -> bytes | None:
    """Return the content of a neutral file, or None for a folder."""
    # A name with an extension is a file.
    return FILES.get(place, b"" if Path(place).suffix else None)


@contextmanager
def _open_parent(workspace: Workspace, folders: tuple[str, ...]) -> Generator[int]:
    top = workspace_files.open_root(workspace)
    try:
        with workspace_files.open_folder(top, folders) as folder:
            yield folder
    finally:
        os.close(top)
