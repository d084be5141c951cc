"""SQL of deleting threads: first nobody's, then gone piece by piece, so that other writes wait for none of it long.

Each piece is a write of its own. A thread that is nobody's is not there for anybody; where its deletion broke off,
cleaning goes on with it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from sqlalchemy import Column, ColumnElement, Connection, Row, delete, select, text, update

from recto.conversation.json import dump, load_object
from recto.store.database.database import Database, lock_thread
from recto.store.ports import CallEnded
from recto.store.runs.calls import unpack
from recto.store.runs.spending import spend
from recto.store.schema import CALLS, EVENTS, FILE_REFS, IS_OPEN, LOG, NOBODY, RUNS, SEGMENTS, THREADS, moment
from recto.store.threads.thread_rows import Stopped, check_owner

# Rows deleted in one write, and runs: about ten milliseconds.
ROWS, RUNS_AT_ONCE = 1000, 20


async def delete_thread(database: Database, owner: str, id: str) -> tuple[Stopped, ...]:
    """Delete a thread with all there is of it. Returns its runs that had not ended."""
    stopped = await database.write(partial(_take_from, owner=owner, id=id))
    await delete_rest(database, id)
    return stopped


def _take_from(connection: Connection, owner: str, id: str) -> tuple[Stopped, ...]:
    lock_thread(connection, id)
    check_owner(connection, owner, id)
    return take_away(connection, [id])


def take_away(connection: Connection, ids: Sequence[str]) -> tuple[Stopped, ...]:
    """End the runs of threads that are locked, and make them nobody's. What calls under way took is spent."""
    columns = (RUNS.c.id, RUNS.c.name, RUNS.c.thread, RUNS.c.last_event)
    # In their order, as workers lock them: who writes for one now finishes, or finds it ended.
    is_ours = RUNS.c.thread.in_(ids)
    opened = select(*columns).where(is_ours, text(IS_OPEN)).order_by(RUNS.c.id).with_for_update()
    rows = connection.execute(opened).all()
    open_calls = _open_calls(connection, [row.id for row in rows])
    connection.execute(update(RUNS).where(is_ours, text(IS_OPEN)).values(status="ended", outcome="cancelled"))
    connection.execute(update(THREADS).where(THREADS.c.id.in_(ids)).values(owner=NOBODY))
    for call in open_calls:
        spend(connection, call.run, _taken(call))
    return tuple(Stopped(id=row.id, name=row.name, thread=row.thread, last_event=row.last_event) for row in rows)


def _open_calls(connection: Connection, runs: Sequence[str]) -> Sequence[Row[*tuple[object, ...]]]:
    columns = (CALLS.c.run, CALLS.c.number, CALLS.c.manifest, CALLS.c.started)
    query = select(*columns).where(CALLS.c.run.in_(runs), CALLS.c.ended.is_(None))
    return connection.execute(query.order_by(CALLS.c.run, CALLS.c.number)).all() if runs else ()


def _taken(call: Row[*tuple[object, ...]]) -> CallEnded:
    """A call whose end we will not hear of: as if it took what we counted of its page, on the day it began."""
    try:
        manifest = load_object(unpack(call.manifest)) or {}
    except (zlib.error, ValueError):
        manifest = {}
    usage = dump({"inputTokens": manifest.get("tokens"), "estimated": True})
    return CallEnded(number=call.number, ended=moment(call.started), usage=usage)


async def delete_rest(database: Database, thread: str) -> None:
    """Delete what is nobody's, in pieces; the thread itself last."""
    rows = [partial(_delete_rows, key=key) for key in (LOG.c.seq, SEGMENTS.c.hash, FILE_REFS.c.id)]
    for piece in (_delete_runs, *rows):
        while await database.write(partial(piece, thread=thread)):
            pass
    await database.write(partial(_delete_thread, thread=thread))


def _delete_runs(connection: Connection, thread: str) -> bool:
    """Some runs with all of theirs, or some events of one that has many. Returns whether more may be left."""
    query = select(RUNS.c.id, RUNS.c.last_event).where(RUNS.c.thread == thread, _is_nobodys(thread))
    rows = connection.execute(query.order_by(RUNS.c.number).limit(RUNS_AT_ONCE)).all()
    sums = accumulate([row.last_event for row in rows])
    ids = [row.id for row, total in zip(rows, sums, strict=True) if total <= ROWS]
    if rows and not ids and not delete_events_of(connection, rows[0].id):
        ids = [rows[0].id]
    if ids:
        connection.execute(delete(RUNS).where(RUNS.c.id.in_(ids)))
    return len(rows) == RUNS_AT_ONCE or len(ids) < len(rows)


def delete_events_of(connection: Connection, run: str) -> int:
    """Delete the oldest events of a run, as many as go in one write."""
    oldest = select(EVENTS.c.number).where(EVENTS.c.run == run).order_by(EVENTS.c.number).limit(1)
    first = connection.execute(oldest).scalar_one_or_none()
    if first is None:
        return 0
    return connection.execute(delete(EVENTS).where(EVENTS.c.run == run, EVENTS.c.number < first + ROWS)).rowcount


def _delete_rows(connection: Connection, thread: str, key: Column[str]) -> bool:
    """Rows of a table by its key, as many as go in one write. Returns whether more may be left."""
    of = key.table.c.thread
    query = select(key).where(of == thread, _is_nobodys(thread)).order_by(key).limit(ROWS)
    last = connection.execute(query).scalars().all()
    if last:
        connection.execute(delete(key.table).where(of == thread, key <= last[-1]))
    return len(last) == ROWS


def _delete_thread(connection: Connection, thread: str) -> None:
    connection.execute(delete(THREADS).where(THREADS.c.id == thread, THREADS.c.owner == NOBODY))


def _is_nobodys(thread: str) -> ColumnElement[bool]:
    # Two may be at it. Once it is gone, somebody may have begun a new one under its id.
    return select(THREADS.c.id).where(THREADS.c.id == thread, THREADS.c.owner == NOBODY).exists()


def nobodys(connection: Connection, limit: int) -> tuple[str, ...]:
    """Threads whose deletion broke off, or is under way."""
    query = select(THREADS.c.id).where(THREADS.c.owner == NOBODY).order_by(THREADS.c.updated, THREADS.c.id)
    return tuple(connection.execute(query.limit(limit)).scalars())
