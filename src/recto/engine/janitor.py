"""Periodic cleanup while the server runs. The caller decides what is too old."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from recto.errors import RectoError

LOGGER = logging.getLogger("recto.engine")
# Seconds between two rounds of one task, so that cleanup does not block other writes.
PAUSE_SECONDS = 0.2


async def run_cleanup(tasks: Mapping[str, Callable[[], Awaitable[int]]], pause: float) -> None:
    """Run each cleanup task until it returns 0, pause, and repeat until cancelled. A failing task does not stop the
    others.
    """
    while True:
        for name, clean in tasks.items():
            await _run_task(name, clean)
        await asyncio.sleep(pause)


async def _run_task(name: str, clean: Callable[[], Awaitable[int]]) -> None:
    try:
        total = 0
        while count := await clean():
            total += count
            await asyncio.sleep(PAUSE_SECONDS)
        if total:
            LOGGER.info("cleaned up %d %s that were to be kept no longer", total, name)
    except Exception as error:  # a loop that ended would keep everything forever
        LOGGER.warning("could not clean up %s: %s", name, error, exc_info=not isinstance(error, RectoError))
