"""Workspaces of threads: which folder belongs to which thread, locks for writers, and cleanup."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4
from weakref import WeakValueDictionary

from recto.config.run_settings import FileToolSettings, SearchSettings, WorkSettings
from recto.errors import SettingsError
from recto.tools.workspace.workspace_files import FOLDER, GIT, PART, PRIVATE_FOLDER, Workspace, open_folder

AT_ONCE = 500
# The suffix of a folder that is not complete.
INCOMPLETE = ".part"
# Suffixes of the files beside a database that hold its newest data.
DATABASE_ENDINGS = ("-wal", "-shm")
# Entries of `.git` that git runs, or that tell git which programs to run.
GIT_GUARDED = ("hooks", "config", "config.worktree", "commondir")
# The most steps to resolve in a path, to stop at circular links.
MAX_PATH_STEPS = 4_096
# Seconds since the last write after which an unfinished file counts as left by a dead process.
ABANDONED_SECONDS = 3_600

# Locks by folder. An entry exists only while a task holds or waits for the lock.
_locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()
# The number of running tools per folder in this process.
_busy: Counter[Path] = Counter()


@dataclass(frozen=True, kw_only=True)
class Workspaces:
    """The workspaces of threads: each its own folder in `root`, or one that the operator gave.

    Nobody may see `private` paths (the server's data and secrets); nobody may change `guarded` ones (its code and
    settings).
    """

    root: Path
    given_folder: Path | None = None
    most_bytes: int = WorkSettings.workspace_bytes
    private: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    search: SearchSettings = SearchSettings()
    limits: FileToolSettings = FileToolSettings()

    def of(self, thread: str, given_folder: Path | None = None) -> Workspace:
        """Return the workspace of a thread, whose agent may have a given folder."""
        folder, whole = given_folder or self.given_folder, [path.resolve() for path in self.private]
        private = _outermost(whole)
        if folder is None:
            # Use an absolute path, because a sandbox starts in another folder.
            own = (self.root / thread).resolve()
            workspace = Workspace(folder=own, most_bytes=self.most_bytes, private=private)
            return replace(workspace, search=self.search, limits=self.limits)
        folder = folder.resolve()
        # Guard links that lead to guarded or private paths too, because replacing such a link would redirect the path.
        guarded = [step for path in self.guarded for step in (*_links_to(path), _real(path))]
        guarded += [link for path in self.private for link in _links_to(path)]
        return Workspace(
            folder=folder,
            is_own=False,
            most_bytes=0,
            hidden=tuple(_inside(folder, _outermost(path for path in whole if folder in path.parents))),
            guarded=tuple(dict.fromkeys((*_inside(folder, guarded), *_git_places(folder)))),
            private=private,
            search=self.search,
            limits=self.limits,
        )


def refresh_guarded(workspace: Workspace) -> Workspace:
    """Return the workspace with the current guarded places of git, because a repository may be new."""
    if workspace.is_own:
        return workspace
    return replace(workspace, guarded=tuple(dict.fromkeys((*workspace.guarded, *_git_places(workspace.folder)))))


def check_given(folder: Path, private: Iterable[Path]) -> None:
    """Raise SettingsError for a folder that cannot be a workspace, or that consists of private data."""
    if not folder.is_dir():
        raise SettingsError(name="workspace", value=str(folder), allowed="there is no such folder. Make it first")
    whole = folder.resolve()
    if whole == Path(whole.anchor) or any(whole.is_relative_to(path.resolve()) for path in private):
        allowed = "agents cannot work in the whole disk, nor in what the server keeps. Name the folder of a project"
        raise SettingsError(name="workspace", value=str(folder), allowed=allowed)


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths that are not inside another of the paths."""
    whole = list(dict.fromkeys(paths))
    return tuple(path for path in whole if not any(other in path.parents for other in whole))


def _inside(folder: Path, paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        if folder in path.parents:
            yield path.relative_to(folder).as_posix()


def _links_to(path: Path) -> Iterator[Path]:
    """Yield the links on the way to a path, the path itself included, each by its real path."""
    folder, steps = Path("/"), [*reversed(path.absolute().parts[1:])]
    for _ in range(MAX_PATH_STEPS):
        if not steps:
            return
        name = steps.pop()
        if name == "..":
            folder = folder.parent
        elif (step := folder / name).is_symlink():
            yield step
            target = step.readlink()
            folder = Path("/") if target.is_absolute() else folder
            steps += [one for one in reversed(target.parts) if one != "/"]
        else:
            folder = step


def _git_places(folder: Path) -> Iterator[str]:
    """Yield the paths that git executes outside any sandbox, and those that tell git where to find programs.

    In a worktree or submodule, `.git` is a file with the path of the repository: yield that file. For a link, also
    yield its target.
    """
    git = folder / GIT
    for path in (git,) if git.is_symlink() or git.is_file() else [git / name for name in GIT_GUARDED]:
        yield from _inside(folder, (path, _real(path)))


def _real(path: Path) -> Path:
    """Return the real path, or the path itself if a link in it cannot be resolved."""
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path


def lock_of(workspace: Path) -> asyncio.Lock:
    """Return the lock for writers of a workspace, so that each one measures the workspace after the previous write."""
    return _locks.setdefault(workspace, asyncio.Lock())


@contextmanager
def mark_busy(workspace: Path) -> Generator[None]:
    """Mark a workspace as in use by tools that may change files."""
    _busy[workspace] += 1
    try:
        yield
    finally:
        _busy[workspace] -= 1
        if not _busy[workspace]:
            del _busy[workspace]


def is_busy(workspace: Path) -> bool:
    """Return True if tools of this process that may change files run in a workspace."""
    return workspace in _busy


async def drop_workspace(root: Path, thread: str) -> None:
    """Delete the folder of a thread. Links in it are not followed."""
    await asyncio.to_thread(drop_folder, root / thread)


@contextmanager
def incomplete_folder(target: Path) -> Generator[Path]:
    """Create a folder under a temporary name and rename it when the context ends. An error removes the folder.

    The folder is locked meanwhile. The sweep removes an unlocked one, which a dead process left behind.
    """
    part = target.with_name(target.name + INCOMPLETE)
    part.mkdir(mode=PRIVATE_FOLDER, parents=True)
    lock = os.open(part, FOLDER)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield part
        part.rename(target)
    except BaseException:
        drop_folder(part)
        raise
    finally:
        os.close(lock)


def _is_incomplete(folder: Path) -> bool:
    if not folder.name.endswith(INCOMPLETE):
        return False
    with suppress(FileNotFoundError):
        lock = os.open(folder, FOLDER)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
    return False


def drop_folder(workspace: Path) -> None:
    """Delete a folder, however deep: inner folders are moved up before they are deleted."""
    with suppress(OSError):
        top = os.open(workspace, FOLDER)
        try:
            pending = _empty_folder(top, top)
            while pending:
                name = pending.pop()
                # Leave a folder that a running command refills to the next sweep.
                with suppress(OSError), open_folder(top, (name,)) as folder:
                    pending += _empty_folder(folder, top)
                    os.rmdir(name, dir_fd=top)
        finally:
            os.close(top)
        workspace.rmdir()


def _empty_folder(folder: int, top: int) -> list[str]:
    """Delete the files of a folder and move its folders to the top under new names. Returns those names."""
    new_names = list[str]()
    with os.scandir(folder) as entries:
        rows = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in rows:
        # Another process may be deleting the same entry.
        with suppress(OSError):
            if is_folder:
                _grant_access(folder, name)
                os.rename(name, new := uuid4().hex, src_dir_fd=folder, dst_dir_fd=top)
                new_names.append(new)
            else:
                os.unlink(name, dir_fd=folder)
    return new_names


def _grant_access(parent: int, name: str) -> None:
    """Give the owner access to a folder so that it can be moved; a link stays as it is."""
    # O_PATH needs no access rights, but exists only on Linux. Elsewhere, a folder without access rights is not deleted.
    folder = os.open(name, FOLDER | getattr(os, "O_PATH", 0), dir_fd=parent)
    try:
        with suppress(OSError):
            Path(f"/proc/self/fd/{folder}").chmod(PRIVATE_FOLDER)
    finally:
        os.close(folder)


async def sweep_workspaces(root: Path, find_known: Callable[[Sequence[str]], Awaitable[Collection[str]]]) -> int:
    """Delete folders of unknown threads and half-written files in the others. Return the number of both."""
    folders = await asyncio.to_thread(_folders, root)
    count = 0
    for at in range(0, len(folders), AT_ONCE):
        some = folders[at : at + AT_ONCE]
        there = await find_known(some)
        for thread in some:
            folder = root / thread
            if thread in there:
                # A folder that is gone or unreadable does not stop the sweep.
                with suppress(OSError):
                    count += await asyncio.to_thread(remove_part_files, folder, time.time() - ABANDONED_SECONDS)
            elif not _is_incomplete(folder):
                await drop_workspace(root, thread)
                count += not folder.exists()
    return count


def remove_part_files(workspace: Path, before: float) -> int:
    """Delete unfinished files that were last written before `before`. Return how many."""
    folder = os.open(workspace, FOLDER)
    try:
        with os.scandir(folder) as entries:
            leftovers = [
                entry
                for entry in entries
                if PART.fullmatch(entry.name)
                and (entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < before)
            ]
        for entry in leftovers:
            os.unlink(entry.name, dir_fd=folder)
    finally:
        os.close(folder)
    return len(leftovers)


def _folders(root: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
