"""Work done in a thread, in order, while who brings it goes on. Refuses to let them get far ahead."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

# One is done and one waits: the thread never waits for the loop to bring the next, and memory stays small.
AHEAD = 2
Act: TypeAlias = Callable[[], None]


class ThreadQueue:
    """Acts one after the other. What one raises is raised to who brings more or ends.

    A thread of the pool that all share is held only while there is something to do, so who is slow holds none.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._under_way = deque[asyncio.Future[None]]()
        self._lock = threading.Lock()
        self._waiting = deque[tuple[Act, asyncio.Future[None]]]()
        self._has_thread = False

    def __enter__(self) -> ThreadQueue:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wait for nothing. What is under way is done to its end, and what waits is not begun."""
        with self._lock:
            self._waiting.clear()
        for done in self._under_way:
            # Who has gone does not ask how it ended.
            if not done.cancel():
                done.exception()

    async def put(self, act: Act) -> None:
        """Have it done behind all that was put before. Where more than two are to be done, wait for the oldest."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._under_way.append(done)
        with self._lock:
            self._waiting.append((act, done))
            has_thread, self._has_thread = self._has_thread, True
        if not has_thread:
            self._loop.run_in_executor(None, self._work)
        if len(self._under_way) > AHEAD:
            await self._under_way.popleft()

    async def end(self) -> None:
        """Wait until all is done."""
        while self._under_way:
            await self._under_way.popleft()

    def _work(self) -> None:
        """In a thread: all there is to do."""
        while (found := self._next()) is not None:
            act, done = found
            try:
                act()
            except Exception as error:
                self._loop.call_soon_threadsafe(_tell, done, error)
            else:
                self._loop.call_soon_threadsafe(_tell, done, None)

    def _next(self) -> tuple[Act, asyncio.Future[None]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._has_thread = False
            return None


def _tell(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
