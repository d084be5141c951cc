"""What stands, while commands run, in the place of guarded things that are not there, so that no command makes them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from recto.errors import ToolError
from recto.tools.workspace.ignored import READ_FILE
from recto.tools.workspace.workspace_files import GIT, NEW_FILE, PRIVATE_FILE, PRIVATE_FOLDER, open_folder, open_root
from recto.tools.workspace.workspaces import Workspace

# Files of git's. A repository that says that all of it lies elsewhere, namely here, is as if it said nothing.
FILES = {".git/config": b"", ".git/commondir": b".\n"}


class Placeholders:
    """Empty files and folders that are there as long as some command runs in their workspace."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._at_work = Counter[Path]()
        self._made: dict[Path, list[str]] = {}

    @contextmanager
    def standing(self, workspace: Workspace) -> Generator[None]:
        """While this lasts, all that is guarded is there, if only something empty."""
        folder = workspace.folder
        with self._lock:
            self._at_work[folder] += 1
            wanted = [place for place in workspace.guarded if not _is_of_no_repository(folder, place)]
            made = [place for place in wanted if _make(workspace, place)]
            self._made.setdefault(folder, []).extend(made)
        try:
            yield
        finally:
            self._leave(workspace)

    def _leave(self, workspace: Workspace) -> None:
        folder = workspace.folder
        with self._lock:
            self._at_work[folder] -= 1
            # What is taken away while it is mounted somewhere is not guarded there any more.
            if not self._at_work[folder]:
                del self._at_work[folder]
                for place in self._made.pop(folder):
                    _take_away(workspace, place)


def _is_of_no_repository(folder: Path, place: str) -> bool:
    """Whether it would be in a folder of git's that is still empty: a command may make a repository there."""
    git = folder / GIT
    return place.startswith(f"{GIT}/") and git.is_dir() and not any(git.iterdir())


def _make(workspace: Workspace, place: str) -> bool:
    """Whether it was not there. Where there is no folder for it, nobody misses it."""
    *folders, name = place.split("/")
    with suppress(OSError, ToolError):
        with _opened(workspace, tuple(folders)) as folder:
            _put(folder, name, _content(place))
        return True
    return False


def _put(folder: int, name: str, content: bytes | None) -> None:
    if content is None:
        os.mkdir(name, PRIVATE_FOLDER, dir_fd=folder)
    else:
        with os.fdopen(os.open(name, NEW_FILE, PRIVATE_FILE, dir_fd=folder), "wb") as file:
            file.write(content)


def _take_away(workspace: Workspace, place: str) -> None:
    """Unless somebody has put something there."""
    *folders, name = place.split("/")
    with suppress(OSError, ToolError), _opened(workspace, tuple(folders)) as folder:
        content = _content(place)
        if content is None:
            os.rmdir(name, dir_fd=folder)
        elif _holds(folder, name, content):
            os.unlink(name, dir_fd=folder)


def _content(place: str) -> bytes | None:
    """What a file in this place holds that says nothing; None: a folder stands there."""
    # What has an ending is a file.
    return FILES.get(place, b"" if Path(place).suffix else None)


def _holds(folder: int, name: str, content: bytes) -> bool:
    with os.fdopen(os.open(name, READ_FILE, dir_fd=folder), "rb") as file:
        return file.read(len(content) + 1) == content


@contextmanager
def _opened(workspace: Workspace, folders: tuple[str, ...]) -> Generator[int]:
    top = open_root(workspace)
    try:
        with open_folder(top, folders) as folder:
            yield folder
    finally:
        os.close(top)
