"""Safe opening of paths in a workspace. No path leads above the workspace's folder, not even in a race.

Every step is opened by its name in the folder opened before, never through a link. A link is read and its own steps are
walked the same way.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from recto.errors import ToolError
from recto.page.fold.rules import ERROR_PREFIX
from recto.tools.ports import ToolContext
from recto.tools.workspace import workspace_files

# Limit of links in a path, as in the kernel. Retries of steps that were swapped meanwhile count too.
MOST_LINKS = 40
# The system's limit of an absolute path in bytes.
LONGEST_ABSOLUTE = 4_096
# Flags that open a file without waiting for the other end of a pipe, and without taking over a terminal.
PLAIN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
SWAPPED = (errno.ENOTDIR, errno.ELOOP, errno.ENOENT, errno.EINVAL, errno.ENXIO)
DRIVE = re.compile(r"[A-Za-z]:/")
KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))
NO_WORKSPACE = "This server gives threads no workspace, so there are no files to work with."
OUTSIDE = "{shown} leads out of the workspace. Name a place inside it, such as src/main.py."
OUT_BY_LINK = "{path} is, or lies behind, a link that leads out of the workspace. What is there is not for you."


@dataclass(frozen=True, kw_only=True)
class OpenPath:
    """A path in a workspace, opened if it exists.

    `names` are the steps from the workspace's folder with all links resolved. The steps in `missing` do not exist.
    `folder` is the last folder that exists, or None if the workspace itself is missing.
    """

    names: tuple[str, ...]
    folder: int | None
    descriptor: int | None = None
    missing: tuple[str, ...] = ()

    @property
    def is_folder(self) -> bool:
        """True for a folder. A missing workspace counts as an empty one."""
        return not self.missing and (self.descriptor is None or stat.S_ISDIR(os.fstat(self.descriptor).st_mode))


def names_in(path: str, roots: Collection[str]) -> tuple[str, ...]:
    """Split a path into names relative to the workspace; empty for the workspace itself. `..` is resolved as text.

    `roots` are the absolute paths of the workspace's folder. Raises ToolError for a path outside.
    """
    label = f"The path {path[: workspace_files.SHOWN_CHARACTERS]!r}"
    if workspace_files.CONTROLS.search(path):
        raise ToolError(f"{label} has control characters. Leave them out.")
    try:
        size = len(path.encode())
    except UnicodeEncodeError as error:
        raise ToolError("The path has half a character in it. Write it again.") from error
    if size > LONGEST_ABSOLUTE:
        raise ToolError(f"{label} ... is too long: {LONGEST_ABSOLUTE} bytes are allowed.")
    if not path.strip():
        raise ToolError(f"{label} is empty. Name a file, such as src/main.py, or `.` for the whole workspace.")
    if "\\" in path and "/" in path:
        raise ToolError(f"{label} has both / and \\ in it. Put / between folders.")
    text = path.replace("\\", "/")
    if DRIVE.match(text):
        raise ToolError(OUTSIDE.format(shown=label))
    if text.startswith("/"):
        text = _below(os.path.normpath(text), roots, label)
    names = list[str]()
    for name in text.split("/"):
        if name == ".." and not names:
            raise ToolError(OUTSIDE.format(shown=label))
        if name == "..":
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    if any(len(name.encode()) > workspace_files.LONGEST_NAME for name in names):
        raise ToolError(f"{label} ... has a name that is too long: {workspace_files.LONGEST_NAME} bytes are allowed.")
    if len(names) > workspace_files.MOST_FOLDERS + 1:
        raise ToolError(f"{label} ... is {len(names) - 1} folders deep, {workspace_files.MOST_FOLDERS} are allowed.")
    return tuple(names)


def _below(path: str, roots: Collection[str], label: str) -> str:
    # Two slashes at the beginning mean the same as one.
    clean = "/" + path.lstrip("/")
    for root in roots:
        if clean == root or clean.startswith(f"{root}/"):
            return clean.removeprefix(root)
    raise ToolError(OUTSIDE.format(shown=label))


def names_of_file(path: str, workspace: workspace_files.Workspace) -> tuple[str, ...]:
    """Split the path of a file into names. Raises ToolError for a path that only a folder can have."""
    names = names_in(path, roots_of(workspace.folder))
    if not names or path.rstrip().endswith(("/", "\\", "/.")):
        label = f"The path {path[: workspace_files.SHOWN_CHARACTERS]!r}"
        raise ToolError(f"{label} names no file. Say what it is to be called, such as src/main.py.")
    return names


def roots_of(folder: Path) -> tuple[str, ...]:
    """Return the absolute paths of a folder: as given, and as commands in it see it."""
    # realpath, not Path.resolve: that raises for a loop of links.
    return tuple(dict.fromkeys((str(folder.absolute()), os.path.realpath(folder))))


def workspace_in(context: ToolContext) -> workspace_files.Workspace:
    """Return the folder of the thread. Raises ToolError if it has none."""
    if context.workspace is None:
        raise ToolError(NO_WORKSPACE)
    return context.workspace


@contextmanager
def prefix_errors() -> Generator[None]:
    """Prefix tool errors with the marker of failed results (R3)."""
    try:
        yield
    except ToolError as error:
        raise ToolError(f"{ERROR_PREFIX} {error}", status=error.status) from error


@contextmanager
def open_path(workspace: workspace_files.Workspace, names: tuple[str, ...]) -> Generator[OpenPath]:
    """Open the file or folder with these names. Raise ToolError for a path outside and for other kinds of files."""
    label = "/".join(names) or "."
    try:
        top = os.open(workspace.folder, workspace_files.FOLDER)
    except FileNotFoundError:
        workspace_files.require_folder(workspace)
        yield OpenPath(names=names, folder=None, missing=names)
        return
    except OSError as error:
        raise ToolError(f"The workspace cannot be opened: {error.strerror}.") from error
    with closing(_Walk(top, workspace)) as walk:
        try:
            place = walk.to(names, label)
        # Report no path of this machine.
        except OSError as error:
            raise ToolError(f"{label} cannot be opened: {error.strerror}.") from error
        yield place


class _Walk:
    """The open folders from the workspace down, and the file at the end."""

    def __init__(self, top: int, workspace: workspace_files.Workspace) -> None:
        self._folders = [top]
        self._names = list[str]()
        self._file: int | None = None
        self._links = 0
        self._folder = workspace.folder
        self._hidden = frozenset(tuple(path.split("/")) for path in workspace.hidden)

    def to(self, names: Sequence[str], label: str) -> OpenPath:
        remaining = [*reversed(names)]
        while remaining:
            name = remaining.pop()
            if name == "..":
                self._climb(label)
            elif name not in ("", "."):
                status = None
                if (*self._names, name) not in self._hidden:
                    with suppress(FileNotFoundError):
                        status = os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False)
                if status is None:
                    missing = (name, *[one for one in reversed(remaining) if one not in ("", ".")])
                    return OpenPath(names=(*self._names, *missing), folder=self._folders[-1], missing=missing)
                remaining += reversed(self._step(name, status, label, is_last=not remaining))
        if self._file is not None:
            return OpenPath(names=tuple(self._names), folder=self._folders[-1], descriptor=self._file)
        return OpenPath(names=tuple(self._names), folder=self._folders[-1], descriptor=self._folders[-1])

    def close(self) -> None:
        for descriptor in (*self._folders, *([] if self._file is None else [self._file])):
            os.close(descriptor)

    def _climb(self, label: str) -> None:
        if len(self._folders) == 1:
            raise ToolError(OUT_BY_LINK.format(path=label))
        os.close(self._folders.pop())
        self._names.pop()

    def _step(self, name: str, status: os.stat_result, label: str, *, is_last: bool) -> Sequence[str]:
        """Take a step and return the names to walk instead: those of a link, or the same name for another try."""
        try:
            if stat.S_ISLNK(status.st_mode):
                return self._follow(name, label)
            if stat.S_ISDIR(status.st_mode):
                if len(self._folders) > workspace_files.MOST_FOLDERS + 1:
                    raise ToolError(
                        f"{label} leads more than {workspace_files.MOST_FOLDERS} folders deep. Choose another path."
                    )
                self._folders.append(os.open(name, workspace_files.FOLDER, dir_fd=self._folders[-1]))
                self._names.append(name)
                return ()
            if stat.S_ISREG(status.st_mode) and is_last:
                descriptor = os.open(name, PLAIN_FILE, dir_fd=self._folders[-1])
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    os.close(descriptor)
                    raise OSError(errno.ENXIO, "It is no file any more")
                self._file = descriptor
                self._names.append(name)
                return ()
        except OSError as error:
            if error.errno not in SWAPPED:
                raise
            self._count_link(label)
            return (name,)
        if stat.S_ISREG(status.st_mode):
            raise ToolError(
                f"{'/'.join((*self._names, name))} is a file, so nothing lies in it. Read it by its own path."
            )
        kind = next((kind for is_kind, kind in KINDS if is_kind(status.st_mode)), "no plain file")
        raise ToolError(f"{label} is {kind}. Only files and folders can be read and changed here.")

    def _follow(self, name: str, label: str) -> Sequence[str]:
        self._count_link(label)
        target = os.readlink(name, dir_fd=self._folders[-1])
        if not target.startswith("/"):
            return target.split("/")
        try:
            inside = _below(target, roots_of(self._folder), label)
        except ToolError as error:
            raise ToolError(OUT_BY_LINK.format(path=label)) from error
        while len(self._folders) > 1:
            self._climb(label)
        return inside.split("/")

    def _count_link(self, label: str) -> None:
        self._links += 1
        if self._links > MOST_LINKS:
            raise ToolError(f"{label} leads through more than {MOST_LINKS} links, or round in a circle.")
