"""The words that keep commands from what is guarded or hidden in a workspace. It follows no link, and never guesses.

Every place is opened by its names, one in the other, and bubblewrap is given what was opened: what is put in its place
meanwhile is not mounted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from recto.errors import ToolError
from recto.tools.workspace.workspace_files import FOLDER, GIT
from recto.tools.workspace.workspaces import DATABASE_ENDINGS, Workspace

# Opens whatever is there, a link itself included, and needs no rights. Linux has it, and only there are sandboxes.
PLACE = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
# A file of ours that has nothing in it. A device in its place could not be opened.
EMPTY = str(Path(__file__).parents[2] / "py.typed")
LINKED = (
    "{path} is a link, so what is to be kept as it is could be elsewhere, and no command is run. "
    "Tell the user to put what it leads to in its place, or to take it away."
)
HIDDEN_GONE = "{path} is not where it was, so commands could see what they are not to see. Put it back first."


@dataclass(frozen=True, kw_only=True)
class Masks:
    """Words for bubblewrap, and the descriptors that they name, open as long as the stack they were made in."""

    words: tuple[str, ...]
    descriptors: tuple[int, ...]


class OpenPlaces:
    """Places in a workspace, each opened once. They are closed with the stack."""

    def __init__(self, workspace: Workspace, stack: ExitStack) -> None:
        self._stack = stack
        self._opened: dict[tuple[str, ...], int | None] = {}
        self._opened[()] = self._kept(os.open(workspace.folder, FOLDER))

    def of(self, place: str) -> int | None:
        """What is in a place; None where nothing is. Raises ToolError where a link stands on the way, or there."""
        return self._open(tuple(place.split("/")))

    def is_folder(self, place: str) -> bool:
        """Whether a folder is there."""
        found = self.of(place)
        return found is not None and stat.S_ISDIR(os.fstat(found).st_mode)

    def is_linked_by_git(self, place: str) -> bool:
        """Whether it is a link in git's own folder, which can be kept as it is by keeping that folder."""
        git, _, name = place.partition("/")
        if git != GIT or not name or "/" in name or not self.is_folder(git):
            return False
        try:
            found = os.stat(name, dir_fd=self.of(git), follow_symlinks=False)
        except FileNotFoundError:
            return False
        return stat.S_ISLNK(found.st_mode)

    def _open(self, names: tuple[str, ...]) -> int | None:
        if names not in self._opened:
            folder = self._open(names[:-1])
            self._opened[names] = None if folder is None else self._step(folder, names)
        return self._opened[names]

    def _step(self, folder: int, names: tuple[str, ...]) -> int | None:
        try:
            found = self._kept(os.open(names[-1], PLACE, dir_fd=folder))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(os.fstat(found).st_mode):
            raise ToolError(LINKED.format(path="/".join(names)))
        return found

    def _kept(self, descriptor: int) -> int:
        self._stack.callback(os.close, descriptor)
        return descriptor


def guarded_places(workspace: Workspace) -> tuple[str, ...]:
    """What is guarded and there now. Raises ToolError where a link is in the way of it, or of what is hidden.

    A link in git's own folder, such as to hooks that are shared, could be replaced there: that folder is guarded whole.
    """
    with ExitStack() as stack:
        places = OpenPlaces(workspace, stack)
        for place in workspace.hidden:
            places.of(place)
        if any(map(places.is_linked_by_git, workspace.guarded)):
            others = [place for place in workspace.guarded if not place.startswith(f"{GIT}/")]
            return (GIT, *(place for place in others if places.of(place) is not None))
        return tuple(place for place in workspace.guarded if places.of(place) is not None)


def open_masks(workspace: Workspace, stack: ExitStack) -> Masks:
    """What is hidden has nothing in it, what is guarded can be read, and neither can be moved away, nor what it is in.

    A folder that something is mounted on cannot be renamed.
    """
    places, words, bound = OpenPlaces(workspace, stack), list[str](), list[int]()
    for place, word in _bound(workspace):
        # What two lists name is bound twice, and bubblewrap closes what it has bound.
        if (found := places.of(place)) is not None:
            bound.append(os.dup(found))
            stack.callback(os.close, bound[-1])
            words += (word, str(bound[-1]), str(workspace.folder / place))
    for place in workspace.hidden:
        words += _hide(places, workspace.folder, place)
    return Masks(words=tuple(words), descriptors=tuple(bound))


def _bound(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Places, and the words that bind them: those around what is kept, outermost first, then what is guarded."""
    kept = [place.split("/") for place in (*workspace.hidden, *workspace.guarded)]
    around = {tuple(names[:depth]) for names in kept for depth in range(1, len(names))}
    for names in sorted(around, key=len):
        yield "/".join(names), "--bind-fd"
    for place in workspace.guarded:
        yield place, "--ro-bind-fd"


def _hide(places: OpenPlaces, folder: Path, place: str) -> Iterator[str]:
    path = str(folder / place)
    if places.is_folder(place):
        yield from ("--size", "4096", "--tmpfs", path, "--remount-ro", path)
    elif places.of(place) is not None:
        yield from ("--ro-bind", EMPTY, path)
    # Where there is a database there may be one of these.
    elif not place.endswith(DATABASE_ENDINGS):
        raise ToolError(HIDDEN_GONE.format(path=place))
