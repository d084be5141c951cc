"""SQL of runs: admission, claims, leases, cancel. Each function is one transaction's work on a connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Literal, cast

import orjson
from sqlalchemy import Connection, Row, Select, Update, and_, exists, func, insert, literal, or_, select, update
from sqlalchemy.exc import IntegrityError

from recto.errors import Conflict, NotFound
from recto.page.canonical import load
from recto.store.ports import Admission, Admitted, Cancel, Claimant, Lease, StoredRun
from recto.store.schema import EVENTS, RUNS, THREADS, Moment

NAMES = [field.name for field in fields(StoredRun)]
COLUMNS = [RUNS.c[name] for name in NAMES]


def admit(connection: Connection, admission: Admission) -> Admitted:
    """Store a run with its input, and its thread if that is new. The same request again changes nothing (P4)."""
    known = _find_named(connection, admission.owner, admission.name)
    if known is not None:
        return _same(known, admission)
    _take_thread(connection, admission)
    values = {
        **{name: getattr(admission, name) for name in ("id", "name", "owner", "thread", "agent", "input")},
        "response_id": admission.response_id,
        "created": admission.created,
        "status": "queued",
        "entered": False,
        "fence": 0,
        "failures": 0,
        "too_long": 0,
        "can_compact": True,
        "calls": 0,
        "last_event": 0,
    }
    try:
        with connection.begin_nested():
            connection.execute(insert(RUNS), values)
    except IntegrityError as error:
        # Another process admitted the same name between our look and our insert.
        known = _find_named(connection, admission.owner, admission.name)
        if known is None:
            raise Conflict(f"Run {admission.name!r} could not be stored: {error.orig}") from error
        return _same(known, admission)
    return Admitted(run=find(connection, admission.owner, admission.id), is_new=True)


def _find_named(connection: Connection, owner: str, name: str) -> StoredRun | None:
    query = select(*COLUMNS).where(RUNS.c.owner == owner, RUNS.c.name == name)
    row = connection.execute(query).one_or_none()
    return _run(row) if row else None


def _same(known: StoredRun, admission: Admission) -> Admitted:
    if _canonical(known.input) != _canonical(admission.input):
        raise Conflict(f"Run {admission.name!r} was started before, with another input. Use a new runId.")
    return Admitted(run=known, is_new=False)


def _canonical(json: bytes) -> bytes:
    # As text: to Python, 1, 1.0 and true are the same value.
    return orjson.dumps(load(json), option=orjson.OPT_SORT_KEYS)


def _take_thread(connection: Connection, admission: Admission) -> None:
    owner = connection.execute(select(THREADS.c.owner).where(THREADS.c.id == admission.thread)).scalar_one_or_none()
    if owner is None:
        owner = _make_thread(connection, admission)
    if owner != admission.owner:
        raise NotFound(what="thread", id=admission.thread)


def _make_thread(connection: Connection, admission: Admission) -> str:
    times = {"created": admission.created, "updated": admission.created}
    values = {"id": admission.thread, "owner": admission.owner, "agent": admission.agent, "last_seq": 0, **times}
    try:
        with connection.begin_nested():
            connection.execute(insert(THREADS), values)
    except IntegrityError:
        query = select(THREADS.c.owner).where(THREADS.c.id == admission.thread)
        return cast("str", connection.execute(query).scalar_one())
    return admission.owner


def claim(connection: Connection, who: Claimant, now: datetime, limit: int) -> tuple[StoredRun, ...]:
    """Take runs to work on, each under a new fence."""
    found = connection.execute(_claimable(now).limit(limit).with_for_update(skip_locked=True)).scalars().all()
    taken = [run for id in found if (run := _take(connection, who, now, cast("str", id)))]
    return tuple(taken)


def _claimable(now: datetime) -> Select[tuple[str]]:
    other = RUNS.alias()
    # Its thread is free, and nothing of its thread waits before it.
    before = and_(other.c.status == "queued", other.c.id < RUNS.c.id)
    busy = exists().where(other.c.thread == RUNS.c.thread, or_(other.c.status == "running", before))
    lost = and_(RUNS.c.status == "running", RUNS.c.lease_until <= now)
    return select(RUNS.c.id).where(or_(and_(RUNS.c.status == "queued", ~busy), lost)).order_by(RUNS.c.id)


def _take(connection: Connection, who: Claimant, now: datetime, id: str) -> StoredRun | None:
    taken = {"status": "running", "fence": RUNS.c.fence + 1, "node": who.node, "boot": who.boot}
    times = {"lease_until": now + who.lease, "started": func.coalesce(RUNS.c.started, literal(now, Moment))}
    change = update(RUNS).where(RUNS.c.id == id, RUNS.c.status != "ended").values(taken | times)
    try:
        with connection.begin_nested():
            row = connection.execute(change.returning(*COLUMNS)).one_or_none()
    except IntegrityError:
        # Another worker made a run of this thread active since we looked.
        return None
    return _run(row) if row else None


def renew(connection: Connection, who: Claimant, leases: Sequence[Lease], now: datetime) -> tuple[Lease, ...]:
    """Hold leases longer."""
    values = {"lease_until": now + who.lease}
    return tuple(lease for lease in leases if connection.execute(_held(lease).values(values)).rowcount)


def hand_back(connection: Connection, leases: Sequence[Lease], now: datetime) -> None:
    """Let leases run out at once."""
    for lease in leases:
        connection.execute(_held(lease).values(lease_until=now, node=None, boot=None))


def _held(lease: Lease) -> Update:
    return update(RUNS).where(RUNS.c.id == lease.run, RUNS.c.fence == lease.fence, RUNS.c.status == "running")


def recover(connection: Connection, who: Claimant, now: datetime) -> int:
    """Free what an earlier boot of this node left claimed."""
    mine = and_(RUNS.c.status == "running", RUNS.c.node == who.node, RUNS.c.boot != who.boot)
    return connection.execute(update(RUNS).where(mine).values(lease_until=now, boot=None)).rowcount


def cancel(connection: Connection, run: StoredRun, wish: Cancel) -> StoredRun:
    """Write down that a run is to end. One that has ended stays as it is; the first reason stays.

    One that nobody has begun ends here and now, with the events given: it does not wait for its thread.
    """
    wanted = and_(RUNS.c.id == run.id, RUNS.c.cancel.is_(None))
    ended: dict[str, object] = {"status": "ended", "outcome": "cancelled", "ended": wish.now, "cancel": wish.reason}
    ended["last_event"] = len(wish.events)
    queued = update(RUNS).where(wanted, RUNS.c.status == "queued", RUNS.c.fence == 0)
    if connection.execute(queued.values(ended)).rowcount:
        rows = [{"run": run.id, "number": number, "body": body} for number, body in enumerate(wish.events, start=1)]
        if rows:
            connection.execute(insert(EVENTS), rows)
    else:
        connection.execute(update(RUNS).where(wanted, RUNS.c.status != "ended").values(cancel=wish.reason))
    return find(connection, run.owner, run.id)


def cancels(connection: Connection, runs: Sequence[str]) -> tuple[str, ...]:
    """Of these runs, those that are to end."""
    query = select(RUNS.c.id).where(RUNS.c.id.in_(runs), RUNS.c.cancel.is_not(None))
    return tuple(connection.execute(query).scalars())


def find(connection: Connection, owner: str, id: str) -> StoredRun:
    """A run by the server's id or the client's name for it (P7)."""
    query = select(*COLUMNS).where(RUNS.c.owner == owner, or_(RUNS.c.id == id, RUNS.c.name == id))
    # A client may have named one run by the id of another: the server's id wins.
    rows = [_run(row) for row in connection.execute(query)]
    found = next((run for run in rows if run.id == id), rows[0] if rows else None)
    if found is None:
        raise NotFound(what="run", id=id)
    return found


def _run(row: Row[tuple[object, ...]]) -> StoredRun:
    values = dict(zip(NAMES, row, strict=True))
    return StoredRun(**cast("dict[str, Literal['queued']]", values))  # pyright: ignore[reportArgumentType] - by name
