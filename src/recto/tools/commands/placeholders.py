"""Placeholders for missing guarded files, so that no running command creates these files.

A sandbox can mount only on existing paths, so placeholders are real files. A note on disk lists them before they are
created, so that a server can remove the placeholders of a killed one.
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

# Content of placeholders for git's files: an empty config, and a `commondir` that names the repository itself.
FILES = {".git/config": b"", ".git/commondir": b".\n"}
BEFORE = (
    "Something that is at work in this folder began before {place} was there, and is not kept from changing it, so no "
    "command is run beside it. End it with terminal-jobs, or wait until it has ended."
)


class Placeholders:
    """Neutral files and empty folders that exist while a command runs in their workspace."""

    def __init__(self, notes: Path | None = None) -> None:
        self._lock = Lock()
        # For each workspace folder, the guarded places of each command that runs in it.
        self._running: dict[Path, list[Sequence[str]]] = {}
        self._names: dict[Path, list[str]] = {}
        self._notes = _Notes(notes) if notes else None

    @contextmanager
    def create_missing(self, workspace: Workspace) -> Generator[Workspace]:
        """Create missing guarded places, and yield the workspace with all guarded places. Remove them after the last
        command.

        Raise ToolError if a link is in the way, or if a running command could create one.
        """
        with self._lock:
            others = self._running.setdefault(workspace.folder, [])
            try:
                # Check before anything is created, then list what exists.
                guarded_places(workspace)
                self._make(workspace)
                guarded = guarded_places(workspace)
                # Reject the start if a running command does not guard the same places, because it could replace one by
                # a link.
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
        # Create none in an empty `.git`, because `git init` may be running. Listing fails if `.git` is missing or a
        # file.
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
    """A file that lists the placeholders of this process. The process locks it while it lives. Only the first line is
    valid.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None

    def write(self, places_by_folder: Mapping[Path, Sequence[str]]) -> None:
        """Store the placeholders that exist or are about to be created."""
        if self._file is None:
            self._folder.mkdir(mode=workspace_files.PRIVATE_FOLDER, parents=True, exist_ok=True)
            self._file = os.open(
                self._folder / f"{uuid4().hex}.json", workspace_files.NEW_FILE, workspace_files.PRIVATE_FILE
            )
            fcntl.flock(self._file, fcntl.LOCK_EX)
        notes = {str(folder): list(places) for folder, places in places_by_folder.items() if places}
        line = json.dumps(notes).encode() + b"\n"
        # Write before truncating, so that the first line is complete even if the process is killed in between.
        os.pwrite(self._file, line, 0)
        os.ftruncate(self._file, len(line))
        os.fsync(self._file)


def remove_leftovers(notes: Path) -> int:
    """Remove the placeholders of dead processes and count them. Keep a note while a folder in it is missing."""
    count = 0
    for path in sorted(notes.glob("*.json")):
        # Skip a locked note, because its process is alive.
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
    """Create a placeholder. Return False if that fails; without a parent folder no placeholder is needed."""
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
    """Remove a placeholder unless it was replaced. A placeholder is private and has its neutral content."""
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
    """Return the content of a placeholder file, or None for a folder."""
    # A name with an extension counts as a file.
    return FILES.get(place, b"" if Path(place).suffix else None)


@contextmanager
def _open_parent(workspace: Workspace, folders: tuple[str, ...]) -> Generator[int]:
    top = workspace_files.open_root(workspace)
    try:
        with workspace_files.open_folder(top, folders) as folder:
            yield folder
    finally:
        os.close(top)
