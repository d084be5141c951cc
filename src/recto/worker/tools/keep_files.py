"""Files of the workspace, kept before the first tool of a turn that may change them, so that they can be put back."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from recto.conversation.log import view
from recto.conversation.messages import ToolCall
from recto.errors import RectoError
from recto.tools.daemon_thread import run_in_thread
from recto.tools.registry import Registry
from recto.tools.workspace.snapshots import KeptTurn
from recto.tools.workspace.workspaces import Workspace, at_work_in, lock_of
from recto.worker.run_state import LoadedRun

LOGGER = logging.getLogger("recto.worker")


@asynccontextmanager
async def keeping_files(run: LoadedRun, calls: Sequence[ToolCall], tools: Registry) -> AsyncGenerator[None]:
    """Keep the files before calls that may change them act. As long as these do, nobody puts files back."""
    workspace = run.inputs.workspace
    if workspace is None or not any(call.name in tools and tools[call.name].mark.changes for call in calls):
        yield
        return
    # Before the files are kept: who puts files back from now on sees it, and who does already is waited for.
    with at_work_in(workspace.folder):
        await _keep_files(run, workspace)
        yield


async def _keep_files(run: LoadedRun, workspace: Workspace) -> None:
    """Once a turn. That it fails is logged, and fails nothing else."""
    snapshots, thread, seen = run.runtime.snapshots, run.state.row.thread, view(run.writer.log)
    if snapshots is None or seen.turn_start >= len(seen.messages):
        return
    user = seen.messages[seen.turn_start]
    try:
        # Who puts files back meanwhile comes first or after.
        async with lock_of(workspace.folder):
            if not await run_in_thread(partial(snapshots.has_turn, thread, user.id), name="snapshot"):
                turn = KeptTurn(message=user.id, admitted=user.time or run.runtime.clock())
                keep = partial(snapshots.keep_turn, workspace, thread, turn)
                await run_in_thread(keep, name="snapshot")
    # A full disk, a folder nobody may read: whatever it is, the tools can do their work.
    except Exception as error:
        LOGGER.warning(
            "The files of thread %s could not be kept before a turn: %s",
            thread,
            error,
            exc_info=not isinstance(error, RectoError),
        )
