"""SQL of retention: what is older than it is to be kept. Refuses to touch a run that has not ended.

What to clean is looked for by readers; each piece is then deleted in a write of its own, so that nobody waits long.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Column, ColumnElement, Connection, and_, delete, exists, select

from recto.store.calls import split
from recto.store.database import Database
from recto.store.reads import AT_ONCE
from recto.store.schema import CALLS, EVENTS, RUNS, SEGMENTS, THREADS, micros
from recto.store.threads import remove


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What is deleted: events and calls of runs that ended before, threads untouched since. None: nothing.

    `limit` is how many runs, and how many threads, are cleaned at once.
    """

    events_before: datetime | None = None
    calls_before: datetime | None = None
    threads_before: datetime | None = None
    limit: int = 100


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """How many rows are gone. All zero: there was nothing left to clean."""

    events: int = 0
    calls: int = 0
    segments: int = 0
    threads: int = 0


async def clean(database: Database, retention: Retention) -> Cleaned:
    """One round: up to `limit` runs' events, runs' calls and threads."""
    events = calls = segments = threads = 0
    if retention.threads_before:
        before = retention.threads_before
        for thread in await database.read(partial(threads_untouched, before=before, limit=retention.limit)):
            threads += await database.write(partial(delete_untouched, thread=thread, before=before))
    if retention.events_before:
        found = partial(runs_with_events, before=retention.events_before, limit=retention.limit)
        for run in await database.read(found):
            events += await database.write(partial(delete_events, run=run))
    if retention.calls_before:
        stale = partial(runs_with_calls, before=retention.calls_before, limit=retention.limit)
        for run, thread in await database.read(stale):
            gone = await database.write(partial(delete_calls, run=run, thread=thread))
            calls, segments = calls + gone[0], segments + gone[1]
    return Cleaned(events=events, calls=calls, segments=segments, threads=threads)


def runs_with_events(connection: Connection, before: datetime, limit: int) -> tuple[str, ...]:
    """Ended runs whose events are to go, oldest first."""
    has = exists().where(EVENTS.c.run == RUNS.c.id)
    query = select(RUNS.c.id).where(RUNS.c.status == "ended", RUNS.c.ended < micros(before), has)
    return tuple(connection.execute(query.order_by(RUNS.c.id).limit(limit)).scalars())


def runs_with_calls(connection: Connection, before: datetime, limit: int) -> tuple[tuple[str, str], ...]:
    """Ended runs whose calls are to go, with their threads, oldest first. A thread at work is left for later."""
    has = exists().where(CALLS.c.run == RUNS.c.id)
    query = select(RUNS.c.id, RUNS.c.thread).where(RUNS.c.status == "ended", RUNS.c.ended < micros(before), has)
    rows = connection.execute(query.where(~_at_work(RUNS.c.thread)).order_by(RUNS.c.id).limit(limit))
    return tuple((row.id, row.thread) for row in rows)


def threads_untouched(connection: Connection, before: datetime, limit: int) -> tuple[str, ...]:
    """Threads nobody has used since, oldest first."""
    query = select(THREADS.c.id).where(_is_untouched(before)).order_by(THREADS.c.updated, THREADS.c.id).limit(limit)
    return tuple(connection.execute(query).scalars())


def delete_events(connection: Connection, run: str) -> int:
    """Delete the events of an ended run."""
    ended = select(RUNS.c.id).where(RUNS.c.id == run, RUNS.c.status == "ended")
    return connection.execute(delete(EVENTS).where(EVENTS.c.run.in_(ended))).rowcount


def delete_calls(connection: Connection, run: str, thread: str) -> tuple[int, int]:
    """Delete the calls of an ended run, and the segments no call of its thread needs any more."""
    # While its row is locked no run can join the thread; one at work might be about to use a segment that is here.
    connection.execute(select(THREADS.c.id).where(THREADS.c.id == thread).with_for_update())
    if connection.execute(select(RUNS.c.id).where(RUNS.c.thread == thread, RUNS.c.status != "ended").limit(1)).all():
        return 0, 0
    calls = connection.execute(delete(CALLS).where(CALLS.c.run == run)).rowcount
    kept = select(CALLS.c.hashes).join(RUNS, RUNS.c.id == CALLS.c.run).where(RUNS.c.thread == thread)
    needed = {hash for hashes in connection.execute(kept).scalars() for hash in split(hashes)}
    stored = connection.execute(select(SEGMENTS.c.hash).where(SEGMENTS.c.thread == thread)).scalars()
    unused = sorted({bytes(hash) for hash in stored} - needed)
    for at in range(0, len(unused), AT_ONCE):
        some = SEGMENTS.c.hash.in_(unused[at : at + AT_ONCE])
        connection.execute(delete(SEGMENTS).where(SEGMENTS.c.thread == thread, some))
    return calls, len(unused)


def delete_untouched(connection: Connection, thread: str, before: datetime) -> int:
    """Delete a thread, if nobody has come back to it since it was looked for."""
    connection.execute(select(RUNS.c.id).where(RUNS.c.thread == thread).order_by(RUNS.c.id).with_for_update())
    still = select(THREADS.c.id).where(THREADS.c.id == thread, _is_untouched(before)).with_for_update()
    if not connection.execute(still).all():
        return 0
    remove(connection, thread)
    return 1


def _is_untouched(before: datetime) -> ColumnElement[bool]:
    return and_(THREADS.c.updated < micros(before), ~_at_work(THREADS.c.id))


def _at_work(thread: Column[str]) -> ColumnElement[bool]:
    other = RUNS.alias()
    return exists().where(other.c.thread == thread, other.c.status != "ended")
