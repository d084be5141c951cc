"""Names as this machine's system knows them, in threads of their own: a DNS that hangs holds up only those."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult


class SystemResolver(AbstractResolver):
    """The system's resolver. A lookup cannot be ended: whoever gave up on one leaves a thread behind for a while.

    Others wait for threads that are left, so there have to be as many as lookups under way, those left behind too.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="recto-lookup")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a name, in the order the system prefers."""
        look = partial(socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(self._pool, look)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Lookup:
    """The names that one fetch looks for, one after another. The last may go on when nobody waits for it any more."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver
        self._task: asyncio.Task[list[ResolveResult]] | None = None

    async def find(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        """What a name stands for. Whoever gives up does not end it: its thread cannot be ended either."""
        self._task = asyncio.create_task(self._resolver.resolve(host, port, family))
        await asyncio.wait([self._task])
        return self._task.result()

    def when_quiet(self, act: Callable[[], None]) -> None:
        """Act once no name is looked for: now, or when the lookup that goes on has ended."""
        if self._task is None or self._task.done():
            act()
        else:
            self._task.add_done_callback(lambda task: _ended(task, act))


def _ended(task: asyncio.Task[list[ResolveResult]], act: Callable[[], None]) -> None:
    # An error that nobody asks for would be logged as a fault of ours.
    if not task.cancelled():
        task.exception()
    act()
