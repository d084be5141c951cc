"""The folders threads work in: which is whose, and the end of those whose thread is gone."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

AT_ONCE = 500


def workspace_of(root: Path, thread: str) -> Path:
    """The folder of a thread. It is made by whoever first writes to it."""
    return root / thread


async def drop_workspace(root: Path, thread: str) -> None:
    """Delete the folder of a thread with all that is in it, if there is one. Links in it are not followed."""
    await asyncio.to_thread(shutil.rmtree, workspace_of(root, thread), ignore_errors=True)


async def sweep_workspaces(root: Path, known: Callable[[Sequence[str]], Awaitable[Collection[str]]]) -> int:
    """Delete the folders of threads that are not known any more. Returns how many that were."""
    folders = await asyncio.to_thread(_folders, root)
    count = 0
    for at in range(0, len(folders), AT_ONCE):
        some = folders[at : at + AT_ONCE]
        there = await known(some)
        for thread in some:
            if thread not in there:
                await drop_workspace(root, thread)
                count += not workspace_of(root, thread).exists()
    return count


def _folders(root: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
