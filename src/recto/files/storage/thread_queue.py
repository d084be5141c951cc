"""Work done in a thread of its own, in order, while who brings it goes on. Refuses to let them get far ahead."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

# One is done and one waits: the thread never waits for the loop to bring the next, and memory stays small.
AHEAD = 2


class ThreadQueue:
    """Acts one after the other in one thread, which begins with the first. What one raises is raised to who is next."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._under_way = deque[asyncio.Future[None]]()

    def __enter__(self) -> ThreadQueue:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wait for nothing. What is under way is done to its end, and what waits is not begun."""
        for act in self._under_way:
            act.cancel()
        self._thread.shutdown(wait=False)

    async def put(self, act: Callable[[], None]) -> None:
        """Have it done behind all that was put before. Where more than two are to be done, wait for the oldest."""
        self._under_way.append(asyncio.get_running_loop().run_in_executor(self._thread, act))
        # Who has gone does not ask how it ended.
        self._under_way[-1].add_done_callback(_heard)
        if len(self._under_way) > AHEAD:
            await self._under_way.popleft()

    async def end(self) -> None:
        """Wait until all is done."""
        while self._under_way:
            await self._under_way.popleft()


def _heard(act: asyncio.Future[None]) -> None:
    if not act.cancelled():
        act.exception()
