"""Events of many runs that come at the same time, written as one: a stream of words costs one commit for all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TypeAlias

from recto.store.database.database import Database
from recto.store.ports import Lease, Recorded
from recto.store.runs import record as progress

# Where more runs than these speak at once, what they say next is gathered for a moment: a commit for each word of a
# thousand streams would take most of a core, and nobody sees so small a delay.
FEW, GATHER_SECONDS = 4, 0.01

_Waiting: TypeAlias = list[tuple[progress.RunEvents, asyncio.Future[Recorded]]]


class EventBatch:
    """Gathers events while a write is under way; the next write takes all of them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: _Waiting = []
        self._at_hand: _Waiting = []
        self._writing: asyncio.Task[None] | None = None

    def add(self, lease: Lease, events: Sequence[bytes]) -> asyncio.Future[Recorded]:
        """Add events of a run. Done once they are committed; another worker has the run: LeaseLost."""
        future: asyncio.Future[Recorded] = self._loop.create_future()
        self._waiting.append(((lease, events), future))
        if self._writing is None:
            self._writing = self._loop.create_task(self._write_all())
            self._writing.add_done_callback(self._leave_nobody)
        return future

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        # Asked for once: each time it is a call of the system.
        return asyncio.get_running_loop()

    async def close(self) -> None:
        """Wait for what was added."""
        if self._writing:
            await asyncio.wait((self._writing,))

    async def _write_all(self) -> None:
        while self._waiting:
            self._at_hand, self._waiting = self._waiting, []
            await self._write(self._at_hand)
            if len(self._at_hand) > FEW:
                await asyncio.sleep(GATHER_SECONDS)
        # In the same breath as the last look: whoever comes now begins anew.
        self._writing = None

    def _leave_nobody(self, writing: asyncio.Task[None]) -> None:
        """Where the write was broken off, whoever waits for it would wait for ever."""
        if writing.cancelled():
            self._writing = None
            for _, future in (*self._at_hand, *self._waiting):
                future.cancel()
            self._at_hand, self._waiting = [], []

    async def _write(self, waiting: _Waiting) -> None:
        try:
            batch = [added for added, _ in waiting]
            size = sum([len(body) for _, events in batch for body in events])
            outcomes = await self._database.write(partial(progress.add_events, batch=batch), size=size)
        except Exception as error:  # whoever waits hears of it, whatever it was
            outcomes = [error] * len(waiting)
        for (_, future), outcome in zip(waiting, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
