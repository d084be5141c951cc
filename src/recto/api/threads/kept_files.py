"""File snapshots of a thread: find them, compare them with the workspace, copy them for forks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from recto.api.backend import Backend
from recto.api.bodies import NUL
from recto.conversation.messages import UserMessage
from recto.errors import NotFound, RectoError
from recto.store.threads.thread_rows import StoredThread
from recto.tools.daemon_thread import run_in_thread
from recto.tools.workspace.restore_files import Restoring, copy_folder, restore
from recto.tools.workspace.snapshots import FolderState, KeptTurn, Snapshots, difference
from recto.tools.workspace.workspaces import Workspace, lock_of

LOGGER = logging.getLogger("recto.api")
# Name of worker threads for file work.
WORK = "snapshot"


class FileChangeRow(TypedDict):
    """A change of a file. One that is not `kept` was too large for the snapshot and cannot be restored."""

    path: str
    change: Literal["created", "changed", "deleted"]
    kept: bool


async def changes_since(backend: Backend, thread: StoredThread, message: str) -> Sequence[FileChangeRow] | None:
    """Return the file changes of a thread since before the turn of a message; None without a snapshot."""
    kept = kept_of(backend, thread)
    before = await before_turn(backend, thread, message) if kept else None
    if kept is None or before is None:
        return None
    snapshots, workspace = kept
    async with lock_of(workspace.folder):
        now = await run_in_thread(partial(snapshots.state, workspace, thread.id), name=WORK)
    return [{"path": one.path, "change": one.change, "kept": one.is_kept} for one in difference(before, now)]


async def copy_files(backend: Backend, fork: StoredThread, source: str, before: str | None) -> None:
    """Copy the files of the source thread, as before a message, to a fork. A shared workspace is not copied.

    All or no files are copied, even if the process is killed. A failure is logged; the fork exists anyway.
    """
    workspaces = backend.workspaces
    if workspaces is None or not _workspace(backend, fork).is_own:
        return
    old, new = (workspaces.of(thread) for thread in (source, fork.id))
    kept = backend.snapshots
    state = await before_turn(backend, fork, before, source) if kept and before else None
    try:
        async with lock_of(old.folder):
            if not old.folder.is_dir():
                return
            finish = partial(_rewind, kept, new, source, state) if kept and state else None
            copy = partial(copy_folder, old.folder, new.folder, most=new.most_bytes, finish=finish)
            await run_in_thread(copy, name=WORK)
    except (OSError, RectoError) as error:
        LOGGER.warning("The files of thread %s could not be copied for its fork: %s", source, error)


def kept_of(backend: Backend, thread: StoredThread) -> tuple[Snapshots, Workspace] | None:
    """Return the snapshots and the workspace of a thread; None if the server keeps no snapshots."""
    if backend.snapshots is None or backend.workspaces is None:
        return None
    return backend.snapshots, _workspace(backend, thread)


def _workspace(backend: Backend, thread: StoredThread) -> Workspace:
    agent = backend.agents.get(thread.agent or backend.agent)
    if backend.workspaces is None:
        raise NotFound(what="workspace of thread", id=thread.id)
    return backend.workspaces.of(thread.id, agent.workspace if agent else None)


async def before_turn(backend: Backend, thread: StoredThread, message: str, source: str = "") -> FolderState | None:
    """Return the files before the turn of a message, which may be out of view by now.

    None without a snapshot, or if it is of another folder than the current workspace.
    """
    id, snapshots = source or thread.id, backend.snapshots
    if snapshots is None or NUL in message or not await run_in_thread(partial(snapshots.has_any, id), name=WORK):
        return None
    log = await backend.store.log_up_to_entry(id, message)
    user = log[-1] if log else None
    if not isinstance(user, UserMessage) or user.time is None:
        return None
    turn = KeptTurn(message=message, admitted=user.time)
    return of_this_folder(backend, thread, await run_in_thread(partial(snapshots.of_turn, id, turn), name=WORK))


def of_this_folder(backend: Backend, thread: StoredThread, state: FolderState | None) -> FolderState | None:
    """Return the state if it is one of the thread's current workspace."""
    return state if state and state.is_of(_workspace(backend, thread)) else None


def _rewind(snapshots: Snapshots, fork: Workspace, source: str, before: FolderState, folder: Path) -> None:
    """Restore the earlier state in the copy, which is in `folder` until it is complete."""
    copied = replace(fork, folder=folder)
    now = snapshots.state(copied, source)
    restore(copied, Restoring(before=before, now=now, content=partial(snapshots.content, source)))
