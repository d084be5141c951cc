"""Functions that run in a thread while the caller prepares the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType


class ThreadQueue:
    """A queue of functions that run one after the other. `put` and `end` raise the error of the previous function."""

    def __init__(self) -> None:
        self._running: asyncio.Task[None] | None = None

    def __enter__(self) -> ThreadQueue:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave without waiting. A running function runs to its end, and its error is dropped."""
        if self._running:
            self._running.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def put(self, function: Callable[[], None]) -> None:
        """Start a function once the previous one has ended."""
        await self.end()
        self._running = asyncio.create_task(asyncio.to_thread(function))

    async def end(self) -> None:
        """Wait for the running function."""
        running, self._running = self._running, None
        if running:
            await running
