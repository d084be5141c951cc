"""Bubblewrap arguments that protect guarded and hidden places of a workspace from commands.

Each place is opened name by name, never through a link, and passed to bubblewrap as a descriptor. So bubblewrap never
mounts a replacement.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

from recto.errors import ToolError
from recto.tools.workspace.workspace_files import FOLDER, GIT
from recto.tools.workspace.workspaces import DATABASE_ENDINGS, Workspace

# Flags that open any entry without access rights, and a link as itself. `O_PATH` exists only on Linux, like the
# sandbox.
PLACE = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
# Empty file to mount over hidden files. A mounted device, such as /dev/null, could not be opened.
EMPTY = str(Path(__file__).parents[2] / "py.typed")
LINKED = (
    "{path} is a link, so what is to be kept as it is could be elsewhere, and no command is run. "
    "Tell the user to put what it leads to in its place, or to take it away."
)
HIDDEN_GONE = "{path} is not where it was, so commands could see what they are not to see. Put it back first."


class OpenPlaces:
    """Places in a workspace, each opened once. The stack closes them."""

    def __init__(self, workspace: Workspace, stack: ExitStack) -> None:
        self._stack = stack
        self._directories: dict[tuple[str, ...], int | None] = {}
        self._directories[()] = self._close_later(os.open(workspace.folder, FOLDER))

    def of(self, place: str) -> int | None:
        """Return the descriptor of a place, or None if it does not exist. Raise ToolError for a link in the path."""
        return self._open(tuple(place.split("/")))

    def is_folder(self, place: str) -> bool:
        """Return True if the place is a folder."""
        descriptor = self.of(place)
        return descriptor is not None and stat.S_ISDIR(os.fstat(descriptor).st_mode)

    def is_linked_by_git(self, place: str) -> bool:
        """Return True for a link directly in `.git`. Guarding all of `.git` protects such a link."""
        git, _, name = place.partition("/")
        if git != GIT or not name or "/" in name or not self.is_folder(git):
            return False
        try:
            status = os.stat(name, dir_fd=self.of(git), follow_symlinks=False)
        except FileNotFoundError:
            return False
        return stat.S_ISLNK(status.st_mode)

    def _open(self, names: tuple[str, ...]) -> int | None:
        if names not in self._directories:
            folder, descriptor = self._open(names[:-1]), None
            if folder is not None:
                with suppress(FileNotFoundError, NotADirectoryError):
                    descriptor = self._close_later(os.open(names[-1], PLACE, dir_fd=folder))
            if descriptor is not None and stat.S_ISLNK(os.fstat(descriptor).st_mode):
                raise ToolError(LINKED.format(path="/".join(names)))
            self._directories[names] = descriptor
        return self._directories[names]

    def _close_later(self, descriptor: int) -> int:
        self._stack.callback(os.close, descriptor)
        return descriptor


def guarded_places(workspace: Workspace) -> tuple[str, ...]:
    """Return the guarded places that exist. Raise ToolError if a guarded or hidden path contains a link.

    Exception: if an entry directly in `.git` is a link (such as `hooks`), guard all of `.git`, because a command could
    otherwise replace the link.
    """
    with ExitStack() as stack:
        places = OpenPlaces(workspace, stack)
        for place in workspace.hidden:
            places.of(place)
        if any(map(places.is_linked_by_git, workspace.guarded)):
            others = [place for place in workspace.guarded if not place.startswith(f"{GIT}/")]
            return (GIT, *(place for place in others if places.of(place) is not None))
        return tuple(place for place in workspace.guarded if places.of(place) is not None)


def open_masks(workspace: Workspace, stack: ExitStack) -> tuple[list[str], list[int]]:
    """Return bubblewrap arguments, and the descriptors that they name. The stack closes the descriptors.

    The arguments make hidden places empty and guarded ones read-only. They also mount all parent folders, because a
    folder with a mount on it cannot be renamed.
    """
    places, words, descriptors = OpenPlaces(workspace, stack), list[str](), list[int]()
    all_names = [place.split("/") for place in (*workspace.hidden, *workspace.guarded)]
    # Mount parents first, the outermost first, then guarded places.
    parents = sorted({tuple(names[:depth]) for names in all_names for depth in range(1, len(names))}, key=len)
    mounts = [("/".join(names), "--bind-fd") for names in parents]
    mounts += [(place, "--ro-bind-fd") for place in workspace.guarded]
    for place, word in mounts:
        # Duplicate the descriptor, because a place may occur twice and bubblewrap closes each descriptor after use.
        if (descriptor := places.of(place)) is not None:
            descriptors.append(os.dup(descriptor))
            stack.callback(os.close, descriptors[-1])
            words += (word, str(descriptors[-1]), str(workspace.folder / place))
    for place in workspace.hidden:
        path = str(workspace.folder / place)
        if places.is_folder(place):
            words += ("--size", "4096", "--tmpfs", path, "--remount-ro", path)
        elif places.of(place) is not None:
            words += ("--ro-bind", EMPTY, path)
        # A database's `-wal` and `-shm` files may be missing, because the database creates and deletes them.
        elif not place.endswith(DATABASE_ENDINGS):
            raise ToolError(HIDDEN_GONE.format(path=place))
    return words, descriptors
