"""Whose document is next: owners take turns, and none has all places. Refuses a queue without end."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from recto.errors import FileRefused

BUSY = (
    "it was not read, because too many documents are waiting to be read at present. "
    "Try again in a minute, or go on without it."
)
CLOSED = "it was not read, because the server is being stopped. Try again in a minute."


class FairQueue:
    """Places, and who waits for one: each owner in turn, the documents of an owner in order.

    Next is whoever has the fewest places, of these whose last turn is longest ago. An owner who has `of_owner` places
    is passed over, and holds up nobody. Where more than `waiting` wait, the owner of the most gives way with the newest
    of them. A document that takes more than `slow_seconds` has a place beside the others, of which there are as many.
    """

    def __init__(self, *, places: int, of_owner: int, waiting: int, slow_seconds: float = 5.0) -> None:
        self._free = places
        self._beside = places
        self._of_owner = of_owner
        self._most_waiting = waiting
        self._slow_seconds = slow_seconds
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # The number of the last turn of each owner who has a place or waits for one.
        self._last_turn: dict[str, int] = {}
        self._turn = 0
        self._is_closed = False

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncGenerator[None]:
        """A place, once it is there. Raises FileRefused (`busy`) where too many wait, now or later."""
        await self._take(owner)
        moving = asyncio.create_task(self._move_beside())
        try:
            yield
        finally:
            if moving.done():
                self._beside += 1
                self._free -= 1
            moving.cancel()
            self._give_back(owner)

    async def _move_beside(self) -> None:
        """Make the place of a slow document free for others, as soon as there is one beside."""
        await asyncio.sleep(self._slow_seconds)
        while not self._beside:
            await asyncio.sleep(self._slow_seconds)
        self._beside -= 1
        self._free += 1
        self._hand_out()

    def close(self) -> None:
        """Whoever waits is refused, and whoever comes."""
        self._is_closed = True
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            if not waiter.done():
                waiter.set_exception(FileRefused(CLOSED, code="busy"))
        self._waiting.clear()

    async def _take(self, owner: str) -> None:
        if self._is_closed:
            raise FileRefused(CLOSED, code="busy")
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(waiter)
        self._hand_out()
        self._refuse_one_too_many(owner)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._give_back(owner)
            self._leave(owner, waiter)
            raise

    def _refuse_one_too_many(self, comer: str) -> None:
        waiting = {owner: [one for one in waiters if not one.done()] for owner, waiters in self._waiting.items()}
        if sum(map(len, waiting.values())) <= self._most_waiting:
            return
        # Of those who have equally many waiting it is the one who comes, so that nobody loses a place to an equal.
        owner = max(waiting, key=lambda name: (len(waiting[name]), name == comer))
        newest = waiting[owner][-1]
        self._leave(owner, newest)
        newest.set_exception(FileRefused(BUSY, code="busy"))

    def _give_back(self, owner: str) -> None:
        self._free += 1
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        self._forget(owner)
        self._hand_out()

    def _leave(self, owner: str, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiting.get(owner)
        if waiters and waiter in waiters:
            waiters.remove(waiter)
        if waiters is not None and not waiters:
            del self._waiting[owner]
        self._forget(owner)

    def _forget(self, owner: str) -> None:
        if owner not in self._taken and owner not in self._waiting:
            self._last_turn.pop(owner, None)

    def _hand_out(self) -> None:
        while self._free > 0 and (owner := self._next_owner()) is not None:
            waiters = self._waiting.pop(owner)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[owner] = waiters
            if not waiter.done():
                self._free -= 1
                self._taken[owner] += 1
                self._turn += 1
                self._last_turn[owner] = self._turn
                waiter.set_result(None)

    def _next_owner(self) -> str | None:
        able = [owner for owner in self._waiting if self._taken[owner] < self._of_owner]
        return min(able, key=lambda owner: (self._taken[owner], self._last_turn.get(owner, 0)), default=None)
