"""Ending a tool at work: it is cancelled and may clean up for a moment. One that does not heed that is left behind."""

from __future__ import annotations

import asyncio
import logging
from typing import TypeAlias

from recto.tools.ports import ToolResult

# How long a cancelled tool may clean up. Cancelling a run and stopping the server wait this long, and no longer.
CLEANING_SECONDS = 1.0

Acting: TypeAlias = "asyncio.Task[ToolResult]"

_log = logging.getLogger("recto.tools")
# The loop itself holds tasks weakly.
_left: set[Acting] = set()


async def leave(name: str, acting: Acting) -> None:
    """Cancel a tool that is still at work, and wait until it has ended or its moment is over."""
    if acting.done():
        return
    acting.cancel()
    try:
        await asyncio.wait((acting,), timeout=CLEANING_SECONDS)
    finally:
        if not acting.done():
            _leave_behind(name, acting)


def _leave_behind(name: str, acting: Acting) -> None:
    _log.warning("Tool %s was cancelled and does not end. It is left behind, and what it answers is not read.", name)
    _left.add(acting)
    acting.add_done_callback(_forget)
    # A loop that closes waits for all of its tasks, however long they take, so it must not know of this one.
    # The function is documented, for those who extend asyncio.
    asyncio._unregister_task(acting)


def _forget(acting: Acting) -> None:
    _left.discard(acting)
    if not acting.cancelled():
        # Asked for, so that the loop does not report it as never seen.
        acting.exception()
