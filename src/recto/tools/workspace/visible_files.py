"""Visible entries of a workspace for searches, listings and snapshots: those that no `.gitignore` ignores.

Ripgrep lists the visible files. It lists no links and folders, so a temporary folder with the same `.gitignore` files
contains a file in place of each link and folder. No link is followed: every folder is opened by name in its parent, so
no race leads outside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from recto.tools.workspace.ripgrep import PARTS, TooManyFiles, exclusion_globs, find_ripgrep
from recto.tools.workspace.workspace_files import FOLDER, GIT

GITIGNORE = ".gitignore"
# Line to add to a folder's `.gitignore`. Then the folder is visible if this file is.
SHOW_GITIGNORE = b"\n!/.gitignore\n"
GITIGNORE_BYTES, RULES_BYTES, MOST_UNDECIDED = 1_000_000, 64 * 2**20, 50_000
DEEPEST = 128
READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderEntry(NamedTuple):
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
    """The visible files, links and folders, or all entries if `is_whole`. `excluded` paths are never visible."""

    files: Collection[str] = ()
    folders: Collection[str] = ()
    excluded: Collection[str] = ()
    is_whole: bool = False

    def entries(self, top: int, *, under: Sequence[str] = (), depth: int = DEEPEST) -> Generator[FolderEntry]:
        """Yield the visible entries of an open folder, or of one `under` it, in the order of their names.

        A folder comes before its entries. A folder that cannot be opened, or is gone, has no entries.
        """
        with suppress(OSError), _open_under(top, under) as folder:
            yield from self._walk(folder, "".join(f"{name}/" for name in under), depth)

    def _walk(self, folder: int, prefix: str, depth: int) -> Generator[FolderEntry]:
        rows = list[tuple[str, os.stat_result]]()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    rows.append((entry.name, entry.stat(follow_symlinks=False)))
        for name, status in sorted(rows, key=lambda row: os.fsencode(row[0])):
            entry = FolderEntry(prefix + name, name, status, folder)
            if is_excluded(entry.path, self.excluded):
                continue
            if not self.is_whole and entry.path not in (self.folders if entry.is_folder else self.files):
                continue
            yield entry
            if entry.is_folder and depth > 1:
                with suppress(OSError), open_inner(name, folder) as inner:
                    yield from self._walk(inner, f"{entry.path}/", depth - 1)


def find_visible(
    folder: Path,
    excluded: Collection[str],
    seconds: float,
    under: Sequence[str] = (),
    *,
    depth: int = DEEPEST,
    most: int | None = None,
) -> VisibleFiles:
    """Return the visible entries of a folder, or of a folder `under` it, `depth` deep. Blocks.

    If the folder `under` it is ignored, return all of that folder's entries. Raise OSError if ripgrep fails or takes
    longer than `seconds`, and TooManyFiles for more than `most` files or for too many rules, links and folders.
    """
    rules, place, end = _Rules(), "/".join(under), len(under) + depth
    with open_inner(str(folder)) as top:
        for count in range(len(under)):
            with suppress(OSError), _open_under(top, under[:count]) as inner:
                rules.read(inner, "".join(f"{name}/" for name in under[:count]))
        if under and not visible_paths([f"{place}/"], rules, seconds):
            return VisibleFiles(excluded=excluded, is_whole=True)
        globs = exclusion_globs(excluded)
        files = {*find_ripgrep().list_files(folder, globs, seconds, place=place, depth=depth, most=most)}
        folders = {path[:at] for path in files for at, sign in enumerate(path) if sign == "/"}
        visible, pending = VisibleFiles(files=files, folders=folders, excluded=excluded), [tuple(under)]
        while pending:
            candidates = (path for names in pending for path in _undecided(top, names, end, visible, rules))
            undecided = [*islice(candidates, MOST_UNDECIDED + 1)]
            if len(undecided) > MOST_UNDECIDED:
                raise TooManyFiles
            shown = visible_paths(undecided, rules, seconds)
            new_folders = {path.removesuffix("/") for path in shown if path.endswith("/")}
            files |= {path for path in shown if not path.endswith("/")}
            folders |= new_folders
            pending = [tuple(path.split("/")) for path in new_folders if path.count("/") + 1 < end]
    return visible


def visible_paths(paths: Collection[str], rules: Mapping[str, bytes], seconds: float) -> set[str]:
    """Return the paths that are visible under `rules`, the contents of `.gitignore` files by path. Blocks.

    The path of a folder ends with a slash. A path in conflict with a `.gitignore` or its folder is visible, because the
    two cannot have existed together.
    """
    if not paths:
        return set()
    shown, without_rules = set[str](), list[str]()
    with TemporaryDirectory(prefix="recto-") as name:
        folder = Path(name)
        for path, content in rules.items():
            try:
                _place(folder, path, content)
            except OSError:
                without_rules.append(path.removesuffix(GITIGNORE))
        places = {path: f"{path}{GITIGNORE}" if path.endswith("/") else path for path in paths}
        for path, file in places.items():
            try:
                _place(folder, file, b"" if path == file else rules.get(file, b"") + SHOW_GITIGNORE)
            except (FileExistsError, IsADirectoryError, NotADirectoryError):
                shown.add(path)
            except OSError:
                continue
        files = find_ripgrep().list_files(folder, (), seconds)
    shown |= {path for path, file in places.items() if file in files}
    return {path for path in shown if not path.startswith(tuple(without_rules))}


class _Rules(dict[str, bytes]):
    """The contents of `.gitignore` files by path. Together they may have `RULES_BYTES`."""

    size = 0

    def read(self, folder: int, prefix: str) -> None:
        with suppress(OSError), os.fdopen(os.open(GITIGNORE, READ_FILE, dir_fd=folder), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                content = self[prefix + GITIGNORE] = file.read(GITIGNORE_BYTES)
                self.size += len(content)
                if self.size > RULES_BYTES:
                    raise TooManyFiles


def _place(folder: Path, path: str, content: bytes) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content)


def _undecided(
    top: int, under: Sequence[str], end: int, visible: VisibleFiles, rules: _Rules, *, prefix: str = ""
) -> Iterator[str]:
    """Yield the links and the folders that are not visible yet; folders end with a slash. Read the rules on the way."""
    prefix += "".join(f"{name}/" for name in under)
    with suppress(OSError), _open_under(top, under) as folder:
        rules.read(folder, prefix)
        with os.scandir(folder) as entries:
            names = [
                (one.name, one.is_dir(follow_symlinks=False))
                for one in entries
                if not one.is_file(follow_symlinks=False)
            ]
        for name, is_folder in names:
            path = prefix + name
            if is_excluded(path, visible.excluded):
                continue
            if is_folder and path in visible.folders:
                if path.count("/") + 1 < end:
                    yield from _undecided(folder, (name,), end, visible, rules, prefix=prefix)
            else:
                yield f"{path}/" if is_folder else path


def is_excluded(path: str, excluded: Collection[str]) -> bool:
    """Return True for excluded paths and their contents, git's own folder, and unfinished files."""
    names = path.split("/")
    is_unfinished = fnmatchcase(names[-1], PARTS)
    return is_unfinished or GIT in names or any(path == one or path.startswith(f"{one}/") for one in excluded)


@contextmanager
def open_inner(name: str, folder: int | None = None) -> Generator[int]:
    """Open a folder by its path, or by its name in an open `folder`. A link to a folder raises OSError."""
    descriptor = os.open(name, FOLDER, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _open_under(top: int, names: Sequence[str]) -> Generator[int]:
    with ExitStack() as stack:
        for name in names:
            top = stack.enter_context(open_inner(name, top))
        yield top
