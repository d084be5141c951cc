"""SQL of retention. Never changes a run that has not ended.

Readers search for old rows; each piece is deleted in its own write, so that other writes wait for none of it long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Select, and_, delete, exists, func, or_, select, text

from recto.store.database.database import Database, lock_thread
from recto.store.runs.calls import split
from recto.store.schema import CALLS, DETACHED, EVENTS, IS_OPEN, RUNS, SEGMENTS, THREADS, to_micros
from recto.store.statement import batches
from recto.store.threads.deleting import ROWS, RUNS_AT_ONCE, delete_events_of, delete_rest, detach_threads, nobodys


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Limits of age: events and calls of runs that ended before, threads unused since. None keeps all.

    `limit` is the number of runs, and of threads, per round.
    """

    events_before: datetime | None = None
    calls_before: datetime | None = None
    threads_before: datetime | None = None
    limit: int = 100


@dataclass(frozen=True, kw_only=True)
class CleaningCounts:
    """Numbers of deleted rows. All zero if nothing was left to clean."""

    events: int = 0
    calls: int = 0
    segments: int = 0
    threads: int = 0


class CleaningCursor(NamedTuple):
    """The position of a search in runs ordered by their end."""

    ended: int = 0
    run: str = ""


@dataclass(kw_only=True)
class Places:
    """The positions at which the next round continues."""

    events: CleaningCursor = field(default_factory=CleaningCursor)
    calls: CleaningCursor = field(default_factory=CleaningCursor)


class StaleRun(NamedTuple):
    """An ended run with rows to delete."""

    run: str
    thread: str
    ended: int


class Unused(NamedTuple):
    """Segments that no call of a thread needs while `newest` is the number of its newest run."""

    hashes: Sequence[bytes] = ()
    newest: int | None = None


async def clean(database: Database, retention: Retention, places: Places) -> CleaningCounts:
    """Run one round of cleanup: up to `limit` runs' events, runs' calls and threads, and interrupted deletions."""
    events = calls = segments = threads = 0
    for thread in await database.read(partial(nobodys, limit=retention.limit)):
        await delete_rest(database, thread)
        threads += 1
    if retention.threads_before:
        before = retention.threads_before
        for thread in await database.read(partial(threads_untouched, before=before, limit=retention.limit)):
            if await database.write(partial(take_untouched, thread=thread, before=before)):
                await delete_rest(database, thread)
                threads += 1
    if retention.events_before:
        found = partial(runs_with_events, before=retention.events_before, limit=retention.limit, after=places.events)
        stale = await database.read(found)
        for run in stale:
            events += await _clean_events(database, run.run)
        places.events = _place_after(stale, retention.limit)
    if retention.calls_before:
        found = partial(runs_with_calls, before=retention.calls_before, limit=retention.limit, after=places.calls)
        stale = await database.read(found)
        for thread in dict.fromkeys([run.thread for run in stale]):
            gone = await _clean_calls(database, thread, [run.run for run in stale if run.thread == thread])
            calls, segments = calls + gone[0], segments + gone[1]
        places.calls = _place_after(stale, retention.limit)
    return CleaningCounts(events=events, calls=calls, segments=segments, threads=threads)


def _place_after(stale: Sequence[StaleRun], limit: int) -> CleaningCursor:
    """Return the position after the last run, or the start: rows may have been skipped, and more runs have ended."""
    return CleaningCursor(stale[-1].ended, stale[-1].run) if len(stale) == limit else CleaningCursor()


async def _clean_events(database: Database, run: str) -> int:
    events = 0
    while gone := await database.write(partial(delete_events, run=run)):
        events += gone
        if gone < ROWS:
            break
    return events


async def _clean_calls(database: Database, thread: str, runs: Sequence[str]) -> tuple[int, int]:
    calls = segments = 0
    for some in batches(runs, RUNS_AT_ONCE):
        calls += await database.write(partial(delete_calls, thread=thread, runs=some))
    unused = await database.read(partial(unused_segments, thread=thread)) if calls else Unused()
    for some in batches(unused.hashes):
        piece = Unused(some, unused.newest)
        segments += await database.write(partial(delete_segments, thread=thread, unused=piece))
    return calls, segments


def runs_with_events(
    connection: Connection, before: datetime, limit: int, after: CleaningCursor
) -> tuple[StaleRun, ...]:
    """Return ended runs with old events, in the order of their end."""
    has = exists().where(EVENTS.c.run == RUNS.c.id)
    return tuple([StaleRun(*row) for row in connection.execute(_ended(before, after).where(has).limit(limit))])


def runs_with_calls(
    connection: Connection, before: datetime, limit: int, after: CleaningCursor
) -> tuple[StaleRun, ...]:
    """Return ended runs with old calls, in the order of their end. A thread with an open run is skipped."""
    has = and_(exists().where(CALLS.c.run == RUNS.c.id), ~_at_work(RUNS.c.thread))
    return tuple([StaleRun(*row) for row in connection.execute(_ended(before, after).where(has).limit(limit))])


def _ended(before: datetime, after: CleaningCursor) -> Select[*tuple[str, str, int]]:
    # Not by status: a database would choose that column's index and then sort.
    query = select(RUNS.c.id, RUNS.c.thread, RUNS.c.ended)
    behind = or_(RUNS.c.ended > after.ended, RUNS.c.id > after.run)
    query = query.where(RUNS.c.ended < to_micros(before), RUNS.c.ended >= after.ended, behind)
    return query.order_by(RUNS.c.ended, RUNS.c.id)


def threads_untouched(connection: Connection, before: datetime, limit: int) -> tuple[str, ...]:
    """Return unused threads, oldest first."""
    query = select(THREADS.c.id).where(_is_untouched(before)).order_by(THREADS.c.updated, THREADS.c.id).limit(limit)
    return tuple(connection.execute(query).scalars())


def delete_events(connection: Connection, run: str) -> int:
    """Delete one batch of events of an ended run. Return their number."""
    is_over = select(RUNS.c.id).where(RUNS.c.id == run, RUNS.c.status == "ended").with_for_update()
    return delete_events_of(connection, run) if connection.execute(is_over).all() else 0


def delete_calls(connection: Connection, thread: str, runs: Sequence[str]) -> int:
    """Delete calls of ended runs of a thread, unless it has an open run."""
    if not _is_quiet(connection, thread):
        return 0
    return connection.execute(delete(CALLS).where(CALLS.c.run.in_(runs))).rowcount


def unused_segments(connection: Connection, thread: str) -> Unused:
    """Return the segments that no call of a thread needs."""
    # Read first, so that a later run changes it.
    newest = _newest(connection, thread)
    stored = {
        bytes(hash) for hash in connection.execute(select(SEGMENTS.c.hash).where(SEGMENTS.c.thread == thread)).scalars()
    }
    kept = select(CALLS.c.hashes).join(RUNS, RUNS.c.id == CALLS.c.run).where(RUNS.c.thread == thread)
    for hashes in connection.execute(kept).scalars():
        stored.difference_update(split(hashes))
    return Unused(sorted(stored), newest)


def delete_segments(connection: Connection, thread: str, unused: Unused) -> int:
    """Delete unused segments, unless a run has started since, which may use them."""
    if not _is_quiet(connection, thread) or _newest(connection, thread) != unused.newest:
        return 0
    some = SEGMENTS.c.hash.in_(unused.hashes)
    return connection.execute(delete(SEGMENTS).where(SEGMENTS.c.thread == thread, some)).rowcount


def _is_quiet(connection: Connection, thread: str) -> bool:
    """Return True if the thread has no open run. Lock it until the end of the transaction."""
    lock_thread(connection, thread)
    opened = select(RUNS.c.id).where(RUNS.c.thread == thread, text(IS_OPEN)).limit(1)
    return not connection.execute(opened).all()


def _newest(connection: Connection, thread: str) -> int | None:
    return connection.execute(select(func.max(RUNS.c.number)).where(RUNS.c.thread == thread)).scalar_one()


def take_untouched(connection: Connection, thread: str, before: datetime) -> bool:
    """Detach a thread from its owner if it is still unused. Return True if it was."""
    lock_thread(connection, thread)
    still = connection.execute(select(THREADS.c.id).where(THREADS.c.id == thread, _is_untouched(before))).all()
    if still:
        detach_threads(connection, [thread])
    return bool(still)


def _is_untouched(before: datetime) -> ColumnElement[bool]:
    return and_(THREADS.c.updated < to_micros(before), THREADS.c.owner != DETACHED, ~_at_work(THREADS.c.id))


def _at_work(thread: Column[str]) -> ColumnElement[bool]:
    other = RUNS.alias()
    return exists().where(other.c.thread == thread, other.c.status != "ended")
