"""Deletion of threads. Each piece is deleted in its own write, so that other writes do not wait long.

A thread is first detached from its owner: a detached thread exists for no user. Cleanup finishes an interrupted
deletion.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from sqlalchemy import Column, ColumnElement, Connection, Row, and_, delete, select, text, update

from recto.conversation.json import dump, load_object
from recto.store.database.database import Database, lock_thread
from recto.store.ports import CallEnd
from recto.store.runs.calls import unpack
from recto.store.runs.run_rows import check_owner
from recto.store.runs.spending import add_spending
from recto.store.schema import CALLS, DETACHED, EVENTS, FILE_REFS, IS_OPEN, LOG, RUNS, SEGMENTS, THREADS, from_micros
from recto.store.threads.thread_rows import StoppedRun

# Rows and runs deleted per write, which takes about ten milliseconds.
ROWS, RUNS_AT_ONCE = 1000, 20


async def delete_thread(database: Database, owner: str, id: str) -> tuple[StoppedRun, ...]:
    """Delete a thread and all its rows. Return its runs that had not ended. Their workers get LeaseLost."""

    def detach(connection: Connection) -> tuple[StoppedRun, ...]:
        lock_thread(connection, id)
        check_owner(connection, owner, id)
        return detach_threads(connection, [id])

    stopped = await database.write(detach)
    await delete_rest(database, id)
    return stopped


def detach_threads(connection: Connection, ids: Sequence[str]) -> tuple[StoppedRun, ...]:
    """End the runs of locked threads and detach the threads from their owners. Count calls in progress as spent."""
    is_open = and_(RUNS.c.thread.in_(ids), text(IS_OPEN))
    columns = (RUNS.c.id, RUNS.c.name, RUNS.c.thread, RUNS.c.last_event)
    # Lock in the same order as workers: a worker's write finishes first, or finds that the run has ended.
    rows = connection.execute(select(*columns).where(is_open).order_by(RUNS.c.id).with_for_update()).all()
    calls = select(CALLS.c.run, CALLS.c.number, CALLS.c.manifest, CALLS.c.started)
    calls = calls.where(CALLS.c.run.in_([row.id for row in rows]), CALLS.c.ended.is_(None))
    open_calls = connection.execute(calls.order_by(CALLS.c.run, CALLS.c.number)).all() if rows else ()
    connection.execute(update(RUNS).where(is_open).values(status="ended", outcome="cancelled"))
    connection.execute(update(THREADS).where(THREADS.c.id.in_(ids)).values(owner=DETACHED))
    for call in open_calls:
        add_spending(connection, call.run, _estimate_end(call))
    return tuple([StoppedRun(id=row.id, name=row.name, thread=row.thread, last_event=row.last_event) for row in rows])


def _estimate_end(call: Row[*tuple[object, ...]]) -> CallEnd:
    """Return an estimated end for a call whose real end will not arrive.

    The end has the time of the start and the tokens counted in the page.
    """
    try:
        manifest = load_object(unpack(call.manifest)) or {}
    except (zlib.error, ValueError):
        manifest = {}
    usage = dump({"inputTokens": manifest.get("tokens"), "estimated": True})
    return CallEnd(number=call.number, ended=from_micros(call.started), usage=usage)


async def delete_rest(database: Database, thread: str) -> None:
    """Delete the rows of a detached thread, in pieces; the thread's row last."""
    rows = [partial(_delete_rows, key=key) for key in (LOG.c.seq, SEGMENTS.c.hash, FILE_REFS.c.id)]
    for piece in (_delete_runs, *rows):
        while await database.write(partial(piece, thread=thread)):
            pass
    last = delete(THREADS).where(THREADS.c.id == thread, THREADS.c.owner == DETACHED)
    await database.write(lambda connection: connection.execute(last).rowcount)


def _delete_runs(connection: Connection, thread: str) -> bool:
    """Delete some runs with their rows, or some events of a large run. Return True if more may be left."""
    query = select(RUNS.c.id, RUNS.c.last_event).where(RUNS.c.thread == thread, _is_detached(thread))
    rows = connection.execute(query.order_by(RUNS.c.number).limit(RUNS_AT_ONCE)).all()
    sums = accumulate([row.last_event for row in rows])
    ids = [row.id for row, total in zip(rows, sums, strict=True) if total <= ROWS]
    if rows and not ids and not delete_events_of(connection, rows[0].id):
        ids = [rows[0].id]
    if ids:
        connection.execute(delete(RUNS).where(RUNS.c.id.in_(ids)))
    return len(rows) == RUNS_AT_ONCE or len(ids) < len(rows)


def delete_events_of(connection: Connection, run: str) -> int:
    """Delete the oldest events of a run, one batch. Return their number."""
    oldest = select(EVENTS.c.number).where(EVENTS.c.run == run).order_by(EVENTS.c.number).limit(1)
    first = connection.execute(oldest).scalar_one_or_none()
    if first is None:
        return 0
    return connection.execute(delete(EVENTS).where(EVENTS.c.run == run, EVENTS.c.number < first + ROWS)).rowcount


def _delete_rows(connection: Connection, thread: str, key: Column[str]) -> bool:
    """Delete one batch of a table's rows of a thread. Return True if more may be left."""
    owner = key.table.c.thread
    query = select(key).where(owner == thread, _is_detached(thread)).order_by(key).limit(ROWS)
    batch = connection.execute(query).scalars().all()
    if batch:
        connection.execute(delete(key.table).where(owner == thread, key <= batch[-1]))
    return len(batch) == ROWS


def _is_detached(thread: str) -> ColumnElement[bool]:
    # Two processes may delete the same thread. After the deletion, a user may create a new thread with its id.
    return select(THREADS.c.id).where(THREADS.c.id == thread, THREADS.c.owner == DETACHED).exists()


def list_detached(connection: Connection, limit: int) -> tuple[str, ...]:
    """Return detached threads, whose deletion is in progress or was interrupted."""
    query = select(THREADS.c.id).where(THREADS.c.owner == DETACHED).order_by(THREADS.c.updated, THREADS.c.id)
    return tuple(connection.execute(query.limit(limit)).scalars())
