"""A check of a storage that callers share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from recto.errors import StorageDown

# A working storage counts as working for a while; after a failure, the next caller checks again.
HOLDS_SECONDS = 10.0
WAIT_SECONDS = 5.0


class StorageHealth:
    """Runs one check for all callers at the same time."""

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
        # Not cancelled after the timeout: the next caller waits for the same check.
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
