"""Cleaning up, again and again, while the server runs. What is old is decided by whoever hands it in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from recto.errors import RectoError

LOGGER = logging.getLogger("recto.engine")
# Between two rounds of the same cleaning, so that nobody's writes wait for it.
BREATH = 0.2


async def keep_clean(parts: Mapping[str, Callable[[], Awaitable[int]]], pause: float) -> None:
    """Clean each part until nothing is left, rest, and begin again, until cancelled. Each tells how much it found.

    A part that fails keeps none of the others from its turn.
    """
    while True:
        for what, clean in parts.items():
            await _clean_up(what, clean)
        await asyncio.sleep(pause)


async def _clean_up(what: str, clean: Callable[[], Awaitable[int]]) -> None:
    try:
        total = 0
        while count := await clean():
            total += count
            await asyncio.sleep(BREATH)
        if total:
            LOGGER.info("cleaned up %d %s that were to be kept no longer", total, what)
    except Exception as error:  # a loop that ended would keep everything for ever
        LOGGER.warning("could not clean up %s: %s", what, error, exc_info=not isinstance(error, RectoError))
