"""Deletion of old rows. Runs that have not ended are never changed.

Searches for old rows are reads. Each piece is deleted in its own write, so that other writes do not wait long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, and_, delete, exists, func, or_, select, text

from recto.store.database.database import Database, lock_thread
from recto.store.runs.calls import split
from recto.store.schema import CALLS, DETACHED, EVENTS, IS_OPEN, RUNS, SEGMENTS, THREADS, to_micros
from recto.store.statement import batches
from recto.store.threads import deletion


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Time limits for cleanup: events and calls of runs that ended earlier, and threads unused since. None deletes
    nothing.

    `limit` is the number of runs, and of threads, per round.
    """

    events_before: datetime | None = None
    calls_before: datetime | None = None
    threads_before: datetime | None = None
    limit: int = 100


@dataclass(frozen=True, kw_only=True)
class CleanupCounts:
    """Numbers of deleted rows. All zero if nothing was left to clean."""

    events: int = 0
    calls: int = 0
    segments: int = 0
    threads: int = 0


class CleanupCursor(NamedTuple):
    """The position of a search through runs, ordered by their end."""

    ended: int = 0
    run: str = ""


@dataclass(kw_only=True)
class CleanupProgress:
    """The positions at which the next round continues."""

    events: CleanupCursor = field(default_factory=CleanupCursor)
    calls: CleanupCursor = field(default_factory=CleanupCursor)


class StaleRun(NamedTuple):
    """An ended run with rows to delete."""

    run: str
    thread: str
    ended: int


class UnusedSegments(NamedTuple):
    """Segments that no call of a thread needs.

    The list is valid while `newest` is the number of the thread's newest run.
    """

    hashes: Sequence[bytes] = ()
    newest: int | None = None


async def clean(database: Database, retention: Retention, progress: CleanupProgress) -> CleanupCounts:
    """Run one round of cleanup.

    Handle up to `limit` each of interrupted deletions, unused threads, runs with old events and runs with old calls.
    """
    events = calls = segments = threads = 0
    limit = retention.limit
    for thread in await database.read(partial(deletion.list_detached, limit=limit)):
        await deletion.delete_rest(database, thread)
        threads += 1
    if before := retention.threads_before:
        for thread in await database.read(partial(list_unused_threads, before=before, limit=limit)):
            if await database.write(partial(detach_unused, thread=thread, before=before)):
                await deletion.delete_rest(database, thread)
                threads += 1
    if before := retention.events_before:
        search = partial(find_runs_with_events, before=before, limit=limit, after=progress.events)
        stale = await database.read(search)
        for run in stale:
            while count := await database.write(partial(delete_events, run=run.run)):
                events += count
                if count < deletion.ROWS:
                    break
        progress.events = _continue_after(stale, limit)
    if before := retention.calls_before:
        search = partial(find_runs_with_calls, before=before, limit=limit, after=progress.calls)
        stale = await database.read(search)
        for thread in dict.fromkeys([run.thread for run in stale]):
            counts = await _clean_calls(database, thread, [run.run for run in stale if run.thread == thread])
            calls, segments = calls + counts[0], segments + counts[1]
        progress.calls = _continue_after(stale, limit)
    return CleanupCounts(events=events, calls=calls, segments=segments, threads=threads)


def _continue_after(stale: Sequence[StaleRun], limit: int) -> CleanupCursor:
    """Return the position after the last run. Return the start if the search reached the end.

    The next search starts over, because rows may have been skipped and more runs have ended.
    """
    return CleanupCursor(stale[-1].ended, stale[-1].run) if len(stale) == limit else CleanupCursor()


async def _clean_calls(database: Database, thread: str, runs: Sequence[str]) -> tuple[int, int]:
    calls = segments = 0
    for batch in batches(runs, deletion.RUNS_AT_ONCE):
        calls += await database.write(partial(delete_calls, thread=thread, runs=batch))
    unused = await database.read(partial(find_unused_segments, thread=thread)) if calls else UnusedSegments()
    for batch in batches(unused.hashes):
        some = UnusedSegments(batch, unused.newest)
        segments += await database.write(partial(delete_segments, thread=thread, unused=some))
    return calls, segments


def find_runs_with_events(
    connection: Connection, before: datetime, limit: int, after: CleanupCursor
) -> tuple[StaleRun, ...]:
    """Return ended runs with old events, in the order of their end."""
    return _find_ended(connection, before, limit, after, exists().where(EVENTS.c.run == RUNS.c.id))


def find_runs_with_calls(
    connection: Connection, before: datetime, limit: int, after: CleanupCursor
) -> tuple[StaleRun, ...]:
    """Return ended runs with old calls, in the order of their end. Skip threads with an open run."""
    has_calls = and_(exists().where(CALLS.c.run == RUNS.c.id), ~_has_open_run(RUNS.c.thread))
    return _find_ended(connection, before, limit, after, has_calls)


def _find_ended(
    connection: Connection, before: datetime, limit: int, after: CleanupCursor, condition: ColumnElement[bool]
) -> tuple[StaleRun, ...]:
    # Do not filter by status: a database would use the index of that column and then sort.
    is_after = or_(RUNS.c.ended > after.ended, RUNS.c.id > after.run)
    query = select(RUNS.c.id, RUNS.c.thread, RUNS.c.ended).where(
        RUNS.c.ended < to_micros(before), RUNS.c.ended >= after.ended, is_after, condition
    )
    return tuple([StaleRun(*row) for row in connection.execute(query.order_by(RUNS.c.ended, RUNS.c.id).limit(limit))])


def list_unused_threads(connection: Connection, before: datetime, limit: int) -> tuple[str, ...]:
    """Return unused threads, oldest first."""
    query = select(THREADS.c.id).where(_is_unused(before)).order_by(THREADS.c.updated, THREADS.c.id).limit(limit)
    return tuple(connection.execute(query).scalars())


def delete_events(connection: Connection, run: str) -> int:
    """Delete one batch of events of an ended run. Return their number."""
    is_over = select(RUNS.c.id).where(RUNS.c.id == run, RUNS.c.status == "ended").with_for_update()
    return deletion.delete_events_of(connection, run) if connection.execute(is_over).all() else 0


def delete_calls(connection: Connection, thread: str, runs: Sequence[str]) -> int:
    """Delete calls of ended runs of a thread, unless it has an open run."""
    if not _lock_if_idle(connection, thread):
        return 0
    return connection.execute(delete(CALLS).where(CALLS.c.run.in_(runs))).rowcount


def find_unused_segments(connection: Connection, thread: str) -> UnusedSegments:
    """Return the segments that no call of a thread needs."""
    # Read this number first, so that a run that starts later changes it.
    newest = _find_newest(connection, thread)
    rows = connection.execute(select(SEGMENTS.c.hash).where(SEGMENTS.c.thread == thread)).scalars()
    unused = {bytes(hash) for hash in rows}
    calls = select(CALLS.c.hashes).join(RUNS, RUNS.c.id == CALLS.c.run).where(RUNS.c.thread == thread)
    for hashes in connection.execute(calls).scalars():
        unused.difference_update(split(hashes))
    return UnusedSegments(sorted(unused), newest)


def delete_segments(connection: Connection, thread: str, unused: UnusedSegments) -> int:
    """Delete unused segments. Delete nothing if a run has started since, because it may use them."""
    if not _lock_if_idle(connection, thread) or _find_newest(connection, thread) != unused.newest:
        return 0
    is_unused = SEGMENTS.c.hash.in_(unused.hashes)
    return connection.execute(delete(SEGMENTS).where(SEGMENTS.c.thread == thread, is_unused)).rowcount


def _lock_if_idle(connection: Connection, thread: str) -> bool:
    """Lock a thread until the end of the transaction. Return True if it has no open run."""
    lock_thread(connection, thread)
    query = select(RUNS.c.id).where(RUNS.c.thread == thread, text(IS_OPEN)).limit(1)
    return not connection.execute(query).all()


def _find_newest(connection: Connection, thread: str) -> int | None:
    return connection.execute(select(func.max(RUNS.c.number)).where(RUNS.c.thread == thread)).scalar_one()


def detach_unused(connection: Connection, thread: str, before: datetime) -> bool:
    """Detach a thread from its owner if it is still unused. Return True if it was."""
    lock_thread(connection, thread)
    is_unused = connection.execute(select(THREADS.c.id).where(THREADS.c.id == thread, _is_unused(before))).all()
    if is_unused:
        deletion.detach_threads(connection, [thread])
    return bool(is_unused)


def _is_unused(before: datetime) -> ColumnElement[bool]:
    return and_(THREADS.c.updated < to_micros(before), THREADS.c.owner != DETACHED, ~_has_open_run(THREADS.c.id))


def _has_open_run(thread: Column[str]) -> ColumnElement[bool]:
    other = RUNS.alias()
    return exists().where(other.c.thread == thread, other.c.status != "ended")
