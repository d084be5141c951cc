"""The folders threads work in: which is whose, who may add to one now, and the end of what nobody needs any more."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import WeakValueDictionary

from recto.tools.workspace.workspace_files import FOLDER, PART

AT_ONCE = 500
# A file on its way is written to all the time; one that was not for so long was left by a process that died.
LEFT_SECONDS = 3_600

# Only as long as somebody has or waits for the lock.
_locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()


def workspace_of(root: Path, thread: str) -> Path:
    """The folder of a thread. It is made by whoever first writes to it."""
    return root / thread


def lock_of(workspace: Path) -> asyncio.Lock:
    """For who adds to a workspace: the next one counts what is there only then. A thread is at work in one process."""
    return _locks.setdefault(workspace, asyncio.Lock())


async def drop_workspace(root: Path, thread: str) -> None:
    """Delete the folder of a thread with all that is in it, if there is one. Links in it are not followed."""
    await asyncio.to_thread(shutil.rmtree, workspace_of(root, thread), ignore_errors=True)


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
            if thread not in there:
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
            count += _drop_left_in(workspace, before)
    return count


def _drop_left_in(workspace: Path, before: float) -> int:
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
