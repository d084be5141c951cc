"""The folders threads work in: which is whose, who may add to one now, and the end of what nobody needs any more."""

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
# What a folder is called that is not whole yet, behind its name.
ARRIVING = ".part"
# Of the files beside a database that hold what is new in it.
DATABASE_ENDINGS = ("-wal", "-shm")
# What of a repository is run, or says what is.
GIT_GUARDED = ("hooks", "config", "config.worktree", "commondir")
# Names and links that a path may lead through. The kernel follows forty links.
MOST_STEPS = 4_096
# A file on its way is written to all the time; one that was not for so long was left by a process that died.
LEFT_SECONDS = 3_600

# Only as long as somebody has or waits for the lock.
_locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()
# How many are at work in each folder, in this process.
_at_work: Counter[Path] = Counter()


@dataclass(frozen=True, kw_only=True)
class Workspaces:
    """Where threads work: each in a folder of its own in `root`, or all of them in one that the operator gave.

    `private` are paths that nobody is to see (what the server keeps, and its secrets), `guarded` those nobody is to
    change (what it runs and is told by).
    """

    root: Path
    given: Path | None = None
    most_bytes: int = WorkSettings.workspace_bytes
    private: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    search: SearchSettings = SearchSettings()
    limits: FileToolSettings = FileToolSettings()

    def of(self, thread: str, given: Path | None = None) -> Workspace:
        """The folder of a thread, whose agent may be given one."""
        folder, whole = given or self.given, [path.resolve() for path in self.private]
        private = _outermost(whole)
        if folder is None:
            # Whole: a sandbox starts elsewhere than this process did.
            own = workspace_of(self.root, thread).resolve()
            made = Workspace(folder=own, most_bytes=self.most_bytes, private=private)
            return replace(made, search=self.search, limits=self.limits)
        folder = folder.resolve()
        return Workspace(
            folder=folder,
            is_own=False,
            most_bytes=0,
            hidden=tuple(_inside(folder, _outermost(path for path in whole if folder in path.parents))),
            guarded=tuple(dict.fromkeys((*_inside(folder, self._guarded()), *_of_git(folder)))),
            private=private,
            search=self.search,
            limits=self.limits,
        )

    def _guarded(self) -> Iterator[Path]:
        """What is guarded, and links that lead to it or to what is private: whoever replaces one leads elsewhere."""
        for path in self.guarded:
            yield from (*_links_to(path), _real(path))
        for path in self.private:
            yield from _links_to(path)


def guarded_now(workspace: Workspace) -> Workspace:
    """A workspace with what git would run there now: since it was looked up, a repository may have been made."""
    if workspace.is_own:
        return workspace
    return replace(workspace, guarded=tuple(dict.fromkeys((*workspace.guarded, *_of_git(workspace.folder)))))


def check_given(folder: Path, private: Iterable[Path]) -> None:
    """Raise SettingsError for a folder that nobody can work in, or that holds what nobody is to see and little else."""
    if not folder.is_dir():
        raise SettingsError(name="workspace", value=str(folder), allowed="there is no such folder. Make it first")
    whole = folder.resolve()
    if whole == Path(whole.anchor) or any(whole.is_relative_to(path.resolve()) for path in private):
        allowed = "agents cannot work in the whole disk, nor in what the server keeps. Name the folder of a project"
        raise SettingsError(name="workspace", value=str(folder), allowed=allowed)


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Paths without those that lie in others of them."""
    whole = list(dict.fromkeys(paths))
    return tuple(path for path in whole if not any(other in path.parents for other in whole))


def _inside(folder: Path, paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        if folder in path.parents:
            yield path.relative_to(folder).as_posix()


def _links_to(path: Path) -> Iterator[Path]:
    """The links on the way to a path, itself included, each by the path that it really has."""
    folder, left = Path("/"), [*reversed(path.absolute().parts[1:])]
    for _ in range(MOST_STEPS):
        if not left:
            return
        name = left.pop()
        if name == "..":
            folder = folder.parent
        elif (step := folder / name).is_symlink():
            yield step
            target = step.readlink()
            folder = Path("/") if target.is_absolute() else folder
            left += [one for one in reversed(target.parts) if one != "/"]
        else:
            folder = step


def _of_git(folder: Path) -> Iterator[str]:
    """What runs outside any sandbox as soon as somebody uses git here, and what says where git finds that.

    In a worktree and in a submodule it lies elsewhere, as the file in its place says. What is a link is guarded where
    it is, and where it leads to.
    """
    git = folder / GIT
    for path in (git,) if git.is_symlink() or git.is_file() else [git / name for name in GIT_GUARDED]:
        yield from _inside(folder, (path, _real(path)))


def _real(path: Path) -> Path:
    """Where a path leads. A link of a command's making may go round, or to where nobody may look: it leads nowhere."""
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path


def workspace_of(root: Path, thread: str) -> Path:
    """The folder of a thread. It is made by whoever first writes to it."""
    return root / thread


def lock_of(workspace: Path) -> asyncio.Lock:
    """For who adds to a workspace: the next one counts what is there only then. A thread is at work in one process."""
    return _locks.setdefault(workspace, asyncio.Lock())


@contextmanager
def at_work_in(workspace: Path) -> Generator[None]:
    """For whose tools may change files in a workspace, as long as they act."""
    _at_work[workspace] += 1
    try:
        yield
    finally:
        _at_work[workspace] -= 1
        if not _at_work[workspace]:
            del _at_work[workspace]


def is_at_work_in(workspace: Path) -> bool:
    """Whether tools that may change files act in a workspace, for whomever. Other processes are not known of."""
    return workspace in _at_work


async def drop_workspace(root: Path, thread: str) -> None:
    """Delete the folder of a thread with all that is in it, if there is one. Links in it are not followed."""
    await asyncio.to_thread(drop_folder, workspace_of(root, thread))


@contextmanager
def arriving_folder(target: Path) -> Generator[Path]:
    """A folder to be filled under another name. It is in its place once it is whole; who breaks off leaves nothing.

    It is locked as long as somebody fills it. One that was left by a process that died is swept.
    """
    part = target.with_name(target.name + ARRIVING)
    part.mkdir(mode=PRIVATE_FOLDER, parents=True)
    held = os.open(part, FOLDER)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield part
        part.rename(target)
    except BaseException:
        drop_folder(part)
        raise
    finally:
        os.close(held)


def _is_arriving(folder: Path) -> bool:
    if not folder.name.endswith(ARRIVING):
        return False
    with suppress(FileNotFoundError):
        held = os.open(folder, FOLDER)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(held)
    return False


def drop_folder(workspace: Path) -> None:
    """Whatever a command has left there: folders that nobody may enter, or thousands of them in each other.

    What is in a folder is moved up before it goes, so it does not matter how deep it was.
    """
    with suppress(OSError):
        top = os.open(workspace, FOLDER)
        try:
            _clear(top)
        finally:
            os.close(top)
        workspace.rmdir()


def _clear(top: int) -> None:
    left = _emptied(top, top)
    while left:
        name = left.pop()
        # What a command that is still at work makes meanwhile is for the next sweep.
        with suppress(OSError), open_folder(top, (name,)) as folder:
            left += _emptied(folder, top)
            os.rmdir(name, dir_fd=top)


def _emptied(folder: int, top: int) -> list[str]:
    """The folders in one, under new names in the top one; what else is in it is deleted."""
    moved = list[str]()
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        # Somebody else may be deleting it too.
        with suppress(OSError):
            if is_folder:
                _let_us_in(folder, name)
                os.rename(name, new := uuid4().hex, src_dir_fd=folder, dst_dir_fd=top)
                moved.append(new)
            else:
                os.unlink(name, dir_fd=folder)
    return moved


def _let_us_in(parent: int, name: str) -> None:
    """Have a folder be one that its owner may look into and move; what has become a link meanwhile stays as it is."""
    # By a descriptor that needs no rights: Linux has them. Elsewhere such a folder stays.
    folder = os.open(name, FOLDER | getattr(os, "O_PATH", 0), dir_fd=parent)
    try:
        with suppress(OSError):
            Path(f"/proc/self/fd/{folder}").chmod(PRIVATE_FOLDER)
    finally:
        os.close(folder)


async def sweep_workspaces(root: Path, known: Callable[[Sequence[str]], Awaitable[Collection[str]]]) -> int:
    """Delete the folders of threads that are not known any more, and half-written files that were left in the others.

    Returns how many of both.
    """
    folders = await asyncio.to_thread(_folders, root)
    count = 0
    for at in range(0, len(folders), AT_ONCE):
        some = folders[at : at + AT_ONCE]
        there = await known(some)
        for thread in some:
            if thread not in there and not _is_arriving(workspace_of(root, thread)):
                await drop_workspace(root, thread)
                count += not workspace_of(root, thread).exists()
        staying = [workspace_of(root, thread) for thread in some if thread in there]
        count += await asyncio.to_thread(_drop_left, staying, time.time() - LEFT_SECONDS)
    return count


def _drop_left(workspaces: Sequence[Path], before: float) -> int:
    count = 0
    for workspace in workspaces:
        # One that is gone by now, or that cannot be looked into, does not keep the others from being swept.
        with suppress(OSError):
            count += drop_left_in(workspace, before)
    return count


def drop_left_in(workspace: Path, before: float) -> int:
    """Delete half-written files in a workspace that nobody has written to since then. Returns how many."""
    folder = os.open(workspace, FOLDER)
    try:
        with os.scandir(folder) as entries:
            left = [entry for entry in entries if PART.fullmatch(entry.name) and _is_left(entry, before)]
        for entry in left:
            os.unlink(entry.name, dir_fd=folder)
    finally:
        os.close(folder)
    return len(left)


def _is_left(entry: os.DirEntry[str], before: float) -> bool:
    return entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < before


def _folders(root: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
