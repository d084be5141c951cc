"""Name lookups in threads of their own, so that a DNS server that hangs delays only its own callers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from recto.http.client import Address, Resolve


class SystemResolver:
    """The system's resolver with a pool of threads.

    A lookup cannot be cancelled: its thread goes on after the caller gave up. The pool therefore needs a thread for
    each lookup in progress, abandoned ones included.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="recto-lookup")

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        """Return all addresses of a host in the system's order of preference."""
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        return await asyncio.get_running_loop().run_in_executor(self._pool, look_up)


class Lookup:
    """The lookups of one fetch, one after another. The last may outlive its caller."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._task: asyncio.Task[Sequence[Address]] | None = None

    async def find(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of a host. Cancelling the caller does not cancel the lookup."""

        async def look_up() -> Sequence[Address]:
            return await self._resolve(host, port)

        self._task = asyncio.create_task(look_up())
        await asyncio.wait([self._task])
        return self._task.result()

    def when_done(self, act: Callable[[], None]) -> None:
        """Call a function when no lookup is in progress."""

        def finish(task: asyncio.Task[Sequence[Address]]) -> None:
            # asyncio would log an error that nobody retrieves.
            if not task.cancelled():
                task.exception()
            act()

        if self._task is None or self._task.done():
            act()
        else:
            self._task.add_done_callback(finish)
