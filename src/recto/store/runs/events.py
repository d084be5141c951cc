"""Events of runs, and a run's snapshot for a late subscriber."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias, cast

from sqlalchemy import Connection, Integer, and_, bindparam, func, select

from recto.conversation.log import Entry
from recto.store.database.database import Database, Repository, read_transaction
from recto.store.log.entry_rows import read_entries, read_log_of_run
from recto.store.ports import Lease, RecordResult, StoredEvent, StoredRun
from recto.store.runs.run_progress import RunEvents, add_events
from recto.store.runs.run_rows import find_run
from recto.store.schema import EVENTS, RUNS
from recto.store.statement import Statement

# Limits of a page for readers, and of one query for a snapshot.
PAGE_BYTES = 2**20
QUERY_EVENTS, QUERY_BYTES = 1_000, 2**24
# Batch size above which the writer pauses after a write, to collect the next batch. One commit per delta of a thousand
# streams would take most of a core, and readers do not notice this delay.
FEW, GATHER_SECONDS = 4, 0.01

_Waiting: TypeAlias = list[tuple[RunEvents, asyncio.Future[RecordResult]]]
_is_after = and_(EVENTS.c.run == bindparam("this"), EVENTS.c.number > bindparam("after"))
_sizes = select(EVENTS.c.number, func.length(EVENTS.c.body).label("size")).where(_is_after)
_candidates = _sizes.order_by(EVENTS.c.number).limit(bindparam("most")).subquery()
_before = (func.sum(_candidates.c.size).over(order_by=_candidates.c.number) - _candidates.c.size).label("before")
_sums = select(_candidates.c.number, _before).subquery()
_last = select(func.max(_sums.c.number)).where(_sums.c.before < bindparam("size", type_=Integer)).scalar_subquery()
# Statement for events within a byte limit. Joins the bodies last, so that bodies of skipped events are never read.
EVENTS_AFTER = Statement(
    select(EVENTS.c.number, EVENTS.c.body).where(_is_after, EVENTS.c.number <= _last).order_by(EVENTS.c.number)
)
HAS_EVENTS = Statement(select(EVENTS.c.number).where(EVENTS.c.run == bindparam("this")).limit(1))


@dataclass(frozen=True, kw_only=True)
class RunSnapshot:
    """A run with its events and its thread's log.

    While the run is open, the log is complete; afterwards, it is the log as the run left it.
    """

    run: StoredRun
    events: Sequence[StoredEvent]
    log: Sequence[Entry]

    @property
    def is_over(self) -> bool:
        """True if the run has ended."""
        return self.run.status == "ended"

    @property
    def has_input(self) -> bool:
        """True if the log contains the run's input, or never will."""
        return self.run.entered or self.is_over

    @property
    def last(self) -> int:
        """Number of the event after which to continue; 0 before the input is in the log."""
        return self.events[-1].number if self.events and self.has_input else 0


class EventBatch:
    """A batch that collects events while a write is in progress. The next write takes all of them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: _Waiting = []
        self._current: _Waiting = []
        self._writing: asyncio.Task[None] | None = None

    def add(self, lease: Lease, events: Sequence[bytes]) -> asyncio.Future[RecordResult]:
        """Add events of a run. The future resolves after the commit, or fails with LeaseLost."""
        future: asyncio.Future[RecordResult] = self._loop.create_future()
        self._waiting.append(((lease, events), future))
        if self._writing is None:
            self._writing = self._loop.create_task(self._write_all())
            self._writing.add_done_callback(self._cancel_pending)
        return future

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        # Cached, because the lookup is a system call.
        return asyncio.get_running_loop()

    async def close(self) -> None:
        """Wait for the events added so far."""
        if self._writing:
            await asyncio.wait((self._writing,))

    async def _write_all(self) -> None:
        while self._waiting:
            self._current, self._waiting = self._waiting, []
            await self._write(self._current)
            if len(self._current) > FEW:
                await asyncio.sleep(GATHER_SECONDS)
        # There is no await between the last check and this reset, so a later event starts a new task.
        self._writing = None

    def _cancel_pending(self, writing: asyncio.Task[None]) -> None:
        """Cancel all pending futures if the write is cancelled; their callers would otherwise wait forever."""
        if writing.cancelled():
            self._writing = None
            for _, future in (*self._current, *self._waiting):
                future.cancel()
            self._current, self._waiting = [], []

    async def _write(self, waiting: _Waiting) -> None:
        try:
            batch = [events for events, _ in waiting]
            size = sum([len(body) for _, events in batch for body in events])
            outcomes = await self._database.write(partial(add_events, batch=batch), size=size)
        except Exception as error:  # the callers get any error
            outcomes = [error] * len(waiting)
        for (_, future), outcome in zip(waiting, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


class Events(Repository):
    """The events of runs."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._batch = EventBatch(database)

    def add(self, lease: Lease, events: Sequence[bytes]) -> asyncio.Future[RecordResult]:
        """Add events of a run in one write with the events of other runs. Raise LeaseLost like `Runs.record`."""
        return self._batch.add(lease, events)

    @read_transaction
    def list_after(
        self, connection: Connection, run: str, after: int, limit: int, size: int = PAGE_BYTES
    ) -> tuple[StoredEvent, ...]:
        """Return up to `limit` events of a run after a number, in order, of about `size` bytes."""
        return _list_after(connection, run, after, limit, size)

    @read_transaction
    def has_run(self, connection: Connection, run: str) -> bool:
        """Return True if a run exists."""
        return connection.execute(select(RUNS.c.id).where(RUNS.c.id == run)).first() is not None

    @read_transaction
    def has_any(self, connection: Connection, run: str) -> bool:
        """Return True if events of a run are stored. Cleanup deletes the events of old runs."""
        return bool(HAS_EVENTS.rows(connection, {"this": run}))

    @read_transaction
    def read_snapshot(self, connection: Connection, run: StoredRun) -> RunSnapshot:
        """Return a run with its events and its thread's log. Raise NotFound if it was deleted."""
        row = find_run(connection, run.owner, run.id)
        log = read_log_of_run(connection, row) if row.status == "ended" else read_entries(connection, row.thread)
        events: list[StoredEvent] = []
        while page := _list_after(connection, row.id, events[-1].number if events else 0, QUERY_EVENTS, QUERY_BYTES):
            events += page
        return RunSnapshot(run=row, events=events, log=log)

    async def close(self) -> None:
        """Wait for the events added so far."""
        await self._batch.close()


def _list_after(connection: Connection, run: str, after: int, limit: int, size: int) -> tuple[StoredEvent, ...]:
    values = {"this": run, "after": after, "most": limit, "size": size}
    rows = cast("Sequence[tuple[int, bytes]]", EVENTS_AFTER.rows(connection, values))
    return tuple([StoredEvent(number=number, body=body) for number, body in rows])
