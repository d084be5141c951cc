"""Events of runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from recto.store.database.database import Database
from recto.store.log import read_log
from recto.store.ports import (
    Lease,
    RecordResult,
    StoredEvent,
    StoredRun,
)
from recto.store.runs import so_far
from recto.store.runs.event_batch import EventBatch
from recto.store.runs.so_far import RunSoFar

EVENTS_BYTES = 2**20


class Events:
    """Events of runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events = EventBatch(database)

    def add(self, lease: Lease, events: Sequence[bytes]) -> asyncio.Future[RecordResult]:
        """Add events and nothing else, together with those of other runs. Under the fence, as `record` is."""
        return self._events.add(lease, events)

    async def list_after(self, run: str, after: int, limit: int, size: int = EVENTS_BYTES) -> Sequence[StoredEvent]:
        """Events of a run behind a number, in order; no more once they have `size` bytes."""
        return await self._database.read(partial(read_log.events_after, run=run, number=after, limit=limit, size=size))

    async def has_run(self, run: str) -> bool:
        """Whether there is such a run; one that was deleted is none."""
        return await self._database.read(partial(read_log.knows, run=run))

    async def has_any(self, run: str) -> bool:
        """Whether the events of a run are still there."""
        return await self._database.read(partial(read_log.has_events, run=run))

    async def read_snapshot(self, run: StoredRun) -> RunSoFar:
        """A run with all its events and the log of its thread, as of one moment. One that was deleted: NotFound."""
        return await self._database.read(partial(so_far.run_so_far, run=run))

    async def close(self) -> None:
        """Wait for the events added so far."""
        await self._events.close()
