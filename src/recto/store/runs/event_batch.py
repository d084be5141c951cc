"""Batching of events: one commit for the events of many runs that arrive at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TypeAlias

from recto.store.database.database import Database
from recto.store.ports import Lease, RecordResult
from recto.store.runs import record as progress

# With more writing runs than these, wait a moment to collect a batch: one commit per delta of a thousand streams would
# take most of a core, and no reader notices so small a delay.
FEW, GATHER_SECONDS = 4, 0.01

_Waiting: TypeAlias = list[tuple[progress.RunEvents, asyncio.Future[RecordResult]]]


class EventBatch:
    """Batches events while a write is in progress; the next write takes all of them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: _Waiting = []
        self._at_hand: _Waiting = []
        self._writing: asyncio.Task[None] | None = None

    def add(self, lease: Lease, events: Sequence[bytes]) -> asyncio.Future[RecordResult]:
        """Add events of a run. The future resolves after the commit, or fails with LeaseLost."""
        future: asyncio.Future[RecordResult] = self._loop.create_future()
        self._waiting.append(((lease, events), future))
        if self._writing is None:
            self._writing = self._loop.create_task(self._write_all())
            self._writing.add_done_callback(self._leave_nobody)
        return future

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        # Cached: the lookup is a system call.
        return asyncio.get_running_loop()

    async def close(self) -> None:
        """Wait for the events added so far."""
        if self._writing:
            await asyncio.wait((self._writing,))

    async def _write_all(self) -> None:
        while self._waiting:
            self._at_hand, self._waiting = self._waiting, []
            await self._write(self._at_hand)
            if len(self._at_hand) > FEW:
                await asyncio.sleep(GATHER_SECONDS)
        # Reset without an await after the last check: a later event starts a new task.
        self._writing = None

    def _leave_nobody(self, writing: asyncio.Task[None]) -> None:
        """Cancel all pending futures if the write is cancelled; their callers would otherwise wait forever."""
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
        except Exception as error:  # the callers get any error
            outcomes = [error] * len(waiting)
        for (_, future), outcome in zip(waiting, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
