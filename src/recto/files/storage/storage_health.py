"""A check of a storage that callers share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from recto.errors import StorageDown

# Seconds for which a successful check is valid. A failure is not cached.
HOLDS_SECONDS = 10.0
WAIT_SECONDS = 5.0


class StorageHealth:
    """A check of a storage. Concurrent callers share one check."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[None]],
        *,
        wait: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probe = probe
        self._wait = wait
        self._clock = clock
        self._asking: asyncio.Task[str | None] | None = None
        self._good_until: float | None = None

    async def check(self) -> None:
        """Raise StorageDown if the storage fails or does not answer in time."""
        if self._good_until is not None and self._clock() < self._good_until:
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        # Do not cancel the check after the timeout, because the next caller waits for it.
        done, _ = await asyncio.wait({self._asking}, timeout=self._wait)
        problem = self._asking.result() if done else f"it did not answer within {self._wait:g} seconds"
        if problem:
            raise StorageDown(problem=problem)

    async def _ask(self) -> str | None:
        try:
            await self._probe()
        except StorageDown as error:
            self._good_until = None
            return error.problem
        self._good_until = self._clock() + HOLDS_SECONDS
        return None
