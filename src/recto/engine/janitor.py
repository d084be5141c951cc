"""Cleaning up, again and again, while the server runs. What is old is decided by whoever hands it in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from recto.errors import StoreError

LOGGER = logging.getLogger("recto.engine")
# Between two rounds of the same cleaning, so that nobody's writes wait for it.
BREATH = 0.2


async def keep_clean(clean: Callable[[], Awaitable[int]], pause: float) -> None:
    """Clean until nothing is left, rest, and begin again, until cancelled. `clean` tells how much it found."""
    while True:
        try:
            total = 0
            while count := await clean():
                total += count
                await asyncio.sleep(BREATH)
            if total:
                LOGGER.info("cleaned up %d rows that were to be kept no longer", total)
        except Exception as error:  # a loop that ended would keep everything for ever
            LOGGER.warning("could not clean up: %s", error, exc_info=not isinstance(error, StoreError))
        await asyncio.sleep(pause)
