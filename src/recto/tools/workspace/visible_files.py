"""Entries of a workspace that searches, listings and snapshots see: all that no `.gitignore` leaves out.

Ripgrep decides about files. A folder with files is visible if one of them is. Links are visible and never followed:
every folder is opened by its name in the one before, so no race leads outside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from recto.tools.workspace.ripgrep import PARTS, exclusion_globs, list_files
from recto.tools.workspace.workspace_files import FOLDER, GIT

GITIGNORE = ".gitignore"
DEEPEST = 128
READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Entry(NamedTuple):
    """A file, link or folder. `folder` is the open folder that contains it, valid until the next entry."""

    path: str
    name: str
    stat: os.stat_result
    folder: int

    @property
    def is_file(self) -> bool:
        """True for a plain file."""
        return stat.S_ISREG(self.stat.st_mode)

    @property
    def is_folder(self) -> bool:
        """True for a folder, not for a link to one."""
        return stat.S_ISDIR(self.stat.st_mode)

    @property
    def is_link(self) -> bool:
        """True for a symbolic link, wherever it leads."""
        return stat.S_ISLNK(self.stat.st_mode)


@dataclass(frozen=True, kw_only=True)
class VisibleFiles:
    """The visible files of a folder, and the folders that contain them. `excluded` paths are never visible."""

    files: Collection[str]
    folders: Collection[str]
    excluded: Collection[str] = ()

    def entries(self, top: int, *, under: Sequence[str] = (), depth: int = DEEPEST) -> Generator[Entry]:
        """Yield the visible entries of an open folder, or of one `under` it, in the order of their names.

        A folder comes before its entries. Entries that cannot be opened, or are gone, have none.
        """
        with suppress(OSError), ExitStack() as stack:
            folder = top
            for name in under:
                folder = stack.enter_context(open_inner(name, folder))
            yield from self._walk(folder, "".join(f"{name}/" for name in under), depth)

    def _walk(self, folder: int, prefix: str, depth: int) -> Generator[Entry]:
        rows = list[tuple[str, os.stat_result]]()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    rows.append((entry.name, entry.stat(follow_symlinks=False)))
        for name, status in sorted(rows, key=lambda row: os.fsencode(row[0])):
            entry = Entry(prefix + name, name, status, folder)
            if is_excluded(entry.path, self.excluded):
                continue
            is_visible = not entry.is_file or entry.path in self.files
            if entry.is_folder:
                is_visible = entry.path in self.folders or not _has_file(folder, name, DEEPEST)
            if not is_visible:
                continue
            yield entry
            if entry.is_folder and depth > 1:
                with suppress(OSError), open_inner(name, folder) as inner:
                    yield from self._walk(inner, f"{entry.path}/", depth - 1)


def find_visible(folder: Path, excluded: Collection[str], seconds: float, under: Sequence[str] = ()) -> VisibleFiles:
    """Return the visible files of a folder. If all files in `under` are ignored, all of them are visible. Blocks.

    Raises OSError if ripgrep fails or takes longer than `seconds`.
    """
    globs, place = exclusion_globs(excluded), "".join(f"{name}/" for name in under)
    files = list_files(folder, globs, seconds)
    if under and not any(path.startswith(place) for path in files):
        files = list_files(folder, globs, seconds, "--no-ignore", place=place)
    folders = {path[:end] for path in files for end, sign in enumerate(path) if sign == "/"}
    return VisibleFiles(files=files, folders=folders, excluded=excluded)


def is_excluded(path: str, excluded: Collection[str]) -> bool:
    """Return True for the excluded paths and all in them, for git's own folder, and for unfinished files."""
    names = path.split("/")
    is_unfinished = fnmatchcase(names[-1], PARTS)
    return is_unfinished or GIT in names or any(path == one or path.startswith(f"{one}/") for one in excluded)


@contextmanager
def open_inner(name: str, folder: int | None = None) -> Generator[int]:
    """Open a folder, in an open one if given. A link to a folder raises OSError."""
    descriptor = os.open(name, FOLDER, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _has_file(parent: int, name: str, depth: int) -> bool:
    folders = list[str]()
    with suppress(OSError), open_inner(name, parent) as folder:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    return True
                folders += [entry.name] if entry.is_dir(follow_symlinks=False) else []
        return depth > 1 and any(_has_file(folder, inner, depth - 1) for inner in folders)
    return False
