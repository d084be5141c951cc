"""SQL of relayed requests (X3). Each is a run of one call that no worker claims.

The run is stored as ended with the outcome `unanswered`, so that nothing continues it if the server is lost while the
reply streams. The run's name identifies the conversation and is found by its index.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, cast

from sqlalchemy import Connection, bindparam, null, select, update

from recto.conversation.log import FoldStep
from recto.store.database.database import lock_thread, lock_user
from recto.store.log.entry_codec import decode_entry
from recto.store.ports import CallEnd, RelayedCall, RelayedPath, RunChange, RunEnding, StoredRequest
from recto.store.runs.admission import check_tokens
from recto.store.runs.record import GROW_WITH_TITLE, append, begin_call, end_call, storable
from recto.store.runs.run_queue import ADMITTED, FRESH, MAKE_RUN, NOT_TAKEN, UNANSWERED, enter_thread
from recto.store.schema import CALLS, LOG, RUNS, from_micros, to_micros
from recto.store.statement import Statement, StatementValues, batches, param

NEWEST = Statement(
    select(RUNS.c.name, RUNS.c.created)
    .where(RUNS.c.thread == bindparam("of"), RUNS.c.owner == bindparam("owner_is"))
    .order_by(RUNS.c.number.desc())
    .limit(1)
)
STEPS = Statement(
    select(LOG.c.seq, LOG.c.id, LOG.c.time, LOG.c.body, LOG.c.run)
    .where(LOG.c.thread == bindparam("of"), LOG.c.kind == "fold_step")
    .order_by(LOG.c.seq)
)
SET_ENDING = Statement(
    update(RUNS)
    .where(RUNS.c.id == bindparam("this"))
    .values(
        outcome=param("how", RUNS.c.outcome),
        error=param("new_error", RUNS.c.error),
        usage=param("new_usage", RUNS.c.usage),
        ended=param("now", RUNS.c.ended),
        node=null(),
    )
)
START = Statement(
    update(RUNS).where(RUNS.c.id == bindparam("this")).values(started=param("now", RUNS.c.started), outcome=UNANSWERED)
)


def path_of(connection: Connection, owner: str, names: Sequence[str]) -> RelayedPath:
    """Return the requests of an owner with these names, in order, and their fold steps."""
    found: dict[str, tuple[str, str, str, int]] = {}
    for some in batches(names):
        query = select(RUNS.c.name, RUNS.c.id, RUNS.c.thread, CALLS.c.model, RUNS.c.created)
        query = query.join(CALLS, CALLS.c.run == RUNS.c.id).where(RUNS.c.owner == owner, RUNS.c.name.in_(some))
        found |= {row.name: (row.id, row.thread, row.model, row.created) for row in connection.execute(query)}
    path = [(name, *found[name]) for name in names if name in found]
    newest = newest_of(connection, owner, path[-1][2]) if path else None
    requests = tuple(
        [
            StoredRequest(
                name=name,
                run=run,
                thread=thread,
                model=model,
                created=from_micros(created),
                last_sent=newest.created if newest and newest.name.startswith(name) else from_micros(created),
                is_newest=newest is not None and newest.name.startswith(name),
            )
            for name, run, thread, model, created in path
        ]
    )
    return RelayedPath(requests=requests, steps=_steps(connection, requests))


class Newest(NamedTuple):
    """Name and time of the newest request of a thread."""

    name: str
    created: datetime


def newest_of(connection: Connection, owner: str, thread: str) -> Newest | None:
    """Return the newest request in a thread of an owner, or None."""
    rows = cast("Sequence[tuple[str, int]]", NEWEST.rows(connection, {"of": thread, "owner_is": owner}))
    return Newest(rows[0][0], from_micros(rows[0][1])) if rows else None


def _steps(connection: Connection, requests: Sequence[StoredRequest]) -> tuple[FoldStep, ...]:
    """Return the fold steps of these requests' runs. Another branch of the conversation has its own steps."""
    runs, threads = {one.run for one in requests}, dict.fromkeys(one.thread for one in requests)
    rows = [row for thread in threads for row in STEPS.rows(connection, {"of": thread}) if row[4] in runs]
    steps = [
        decode_entry("fold_step", bytes(body), id=id, seq=seq, time=from_micros(time))
        for seq, id, time, body, _ in cast("Sequence[tuple[int, str, int, bytes, str]]", rows)
    ]
    return tuple([step for step in steps if isinstance(step, FoldStep)])


def begin(connection: Connection, relayed: RelayedCall) -> None:
    """Store a request and its fold step before it is sent on. Raise LimitReached if the user's tokens are spent."""
    admission, now = relayed.admission, relayed.call.started
    lock_user(connection, admission.owner)
    lock_thread(connection, admission.thread)
    check_tokens(connection, admission)
    agent, _ = enter_thread(connection, admission)
    values: StatementValues = {
        **{name: getattr(admission, name) for name in ADMITTED},
        **FRESH,
        **NOT_TAKEN,
        "status": "ended",
        "node": relayed.node,
        "calls": relayed.call.number,
        "agent": agent,
        "created": to_micros(admission.created),
        "owner_is": admission.owner,
    }
    if not MAKE_RUN.rows(connection, values):
        # The same request was sent before and keeps the name by which the conversation is found.
        MAKE_RUN.rows(connection, {**values, "name": f"{admission.name}-{admission.id}"})
    START.count(connection, {"this": admission.id, "now": to_micros(now)})
    grown = {"this": admission.thread, "more": 0, "now": to_micros(now), "first_words": relayed.title}
    GROW_WITH_TITLE.rows(connection, grown)
    if relayed.step:
        append(connection, admission.thread, RunChange(entries=(relayed.step,)), now, run=admission.id)
    begin_call(connection, admission.id, admission.thread, relayed.call)


def end(connection: Connection, run: str, call: CallEnd, ending: RunEnding) -> None:
    """Store the result of a request."""
    end_call(connection, run, call)
    values: StatementValues = {
        "this": run,
        "how": ending.outcome,
        "new_error": storable(ending.error),
        "new_usage": call.usage,
        "now": to_micros(call.ended),
    }
    SET_ENDING.count(connection, values)


def size_of(relayed: RelayedCall) -> int:
    """Return the approximate number of bytes of a request."""
    return len(relayed.call.manifest) + sum([len(segment.data) for segment in relayed.call.segments])
