"""Waiting for something a run does, no longer than the run may go on."""

from __future__ import annotations

import asyncio

from recto.worker.desk import Desk


async def is_done_in_time(desk: Desk, doing: asyncio.Task[object]) -> bool:
    """Wait for it. False: the run was cancelled, or its time is up, before it was done. It is left as it is."""
    cancelled = asyncio.create_task(desk.signal.cancelled.wait())
    try:
        await asyncio.wait((doing, cancelled), timeout=desk.seconds_left, return_when=asyncio.FIRST_COMPLETED)
        return doing.done()
    finally:
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
