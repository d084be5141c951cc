"""Rows of runs: columns, parsing, lookup, the owner of the thread, and the condition for writes under a lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Literal, cast

from sqlalchemy import Connection, and_, bindparam, or_, select, update

from recto.errors import NotFound
from recto.store.ports import Lease, StoredRun
from recto.store.schema import EVENTS, RUNS, THREADS, from_micros
from recto.store.statement import Statement, Value, insert_into

NAMES = [field.name for field in fields(StoredRun)]
# Columns of a run that come from the row of its thread.
THREAD_COLUMNS = {"last_seq": THREADS.c.last_seq, "thread_created": THREADS.c.created}
COLUMNS = [
    *[RUNS.c[name] for name in NAMES if name not in THREAD_COLUMNS],
    *[
        select(column).where(THREADS.c.id == RUNS.c.thread).scalar_subquery().label(name)
        for name, column in THREAD_COLUMNS.items()
    ],
]
TIMES = ("created", "started", "ended", "thread_created")
FLAGS = ("entered", "can_compact")
FIND = Statement(
    select(*COLUMNS).where(
        RUNS.c.owner == bindparam("owner_is"), or_(RUNS.c.id == bindparam("id_is"), RUNS.c.name == bindparam("id_is"))
    )
)
# Condition of every write for a run: the run is active and has this fence.
IS_HELD = and_(RUNS.c.id == bindparam("this"), RUNS.c.fence == bindparam("my_fence"), RUNS.c.status == "running")
UPDATE_HELD = update(RUNS).where(IS_HELD)
IS_OWN_THREAD = and_(THREADS.c.id == bindparam("this"), THREADS.c.owner == bindparam("owner_is"))
FIND_AGENT = Statement(select(THREADS.c.agent).where(IS_OWN_THREAD))
ADD_EVENT = insert_into(EVENTS, ("run", "number", "body"))


def check_owner(connection: Connection, owner: str, id: str) -> None:
    """Raise NotFound if the owner has no such thread."""
    if not FIND_AGENT.rows(connection, {"this": id, "owner_is": owner}):
        raise NotFound(what="thread", id=id)


def lease_values(lease: Lease) -> dict[str, Value]:
    """Return the parameters of `IS_HELD`."""
    return {"this": lease.run, "my_fence": lease.fence}


def find_run(connection: Connection, owner: str, id: str) -> StoredRun:
    """Return a run by the server's id or the client's name (P7). Raise NotFound for another user's run."""
    # The server's id takes precedence, because a client may have used the id of one run as the name of another.
    runs = [parse_run(row) for row in FIND.rows(connection, {"owner_is": owner, "id_is": id})]
    if not runs:
        raise NotFound(what="run", id=id)
    return next((run for run in runs if run.id == id), runs[0])


def parse_run(row: Sequence[object]) -> StoredRun:
    """Build a run from its row (`COLUMNS`)."""
    values = dict(zip(NAMES, row, strict=True))
    values |= {name: from_micros(time) for name in TIMES if isinstance(time := values[name], int)}
    values |= {name: bool(values[name]) for name in FLAGS}
    return StoredRun(**cast("dict[str, Literal['queued']]", values))  # pyright: ignore[reportArgumentType] - by name
