"""SQL of runs: admission, claims, leases, cancellation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Literal, cast

import orjson
from sqlalchemy import Connection, and_, bindparam, case, exists, func, null, or_, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from recto.conversation.json import load
from recto.errors import Conflict, NotFound
from recto.skills.known import FREE_TIER
from recto.store.database.database import lock_thread, lock_user
from recto.store.files.files import add_refs, lock_attachments
from recto.store.ports import Admission, AdmissionResult, Cancel, Claimant, Lease, StoredRun
from recto.store.runs.admission import make_room
from recto.store.runs.resuming import taken_by
from recto.store.schema import DETACHED, EVENTS, IS_OPEN, PROFILES, RUN_NUMBERS, RUNS, THREADS, from_micros, to_micros
from recto.store.statement import Statement, StatementValues, Value, insert_into, insert_missing, param, savepoint

NAMES = [field.name for field in fields(StoredRun)]
# Columns of a run that come from its thread's row.
OF_THREAD = {"last_seq": THREADS.c.last_seq, "thread_created": THREADS.c.created}
COLUMNS = [
    *[RUNS.c[name] for name in NAMES if name not in OF_THREAD],
    *[
        select(column).where(THREADS.c.id == RUNS.c.thread).scalar_subquery().label(name)
        for name, column in OF_THREAD.items()
    ],
]
TIMES = ("created", "started", "ended", "thread_created")
FLAGS = ("entered", "can_compact")
# A run's row before its first claim.
FRESH: dict[str, str | int | None] = {
    "status": "queued",
    **dict.fromkeys(("fence", "losses", "failures", "too_long", "calls", "last_event"), 0),
    "entered": False,
    "can_compact": True,
}
# Columns that a claim sets.
TAKEN = ("started", "node", "boot", "lease_until")
NOT_TAKEN: StatementValues = dict.fromkeys(TAKEN)
DELETED = "Thread {thread!r} was deleted just now. Send the run again."
ADMITTED = ("id", "name", "owner", "thread", "input", "response_id", "digest")

MAKE_THREAD = insert_missing(THREADS, ("id", "owner", "agent", "last_seq", "created", "updated"))
THREAD = Statement(
    select(THREADS.c.owner, THREADS.c.agent, *OF_THREAD.values()).where(THREADS.c.id == bindparam("this"))
)
TIER = Statement(select(PROFILES.c.tier).where(PROFILES.c.owner == bindparam("owner_is")))
SET_AGENT = Statement(
    update(THREADS).where(THREADS.c.id == bindparam("this")).values(agent=param("asked", THREADS.c.agent))
)


def _make_run() -> Statement:
    tier = select(PROFILES.c.tier).where(PROFILES.c.owner == bindparam("owner_is")).scalar_subquery()
    next_number = select(func.coalesce(func.max(RUNS.c.number), 0) + 1).scalar_subquery()
    on_postgres, on_sqlite = (
        clause.values(tier=func.coalesce(tier, FREE_TIER)).on_conflict_do_nothing().returning(RUNS.c.tier)
        for clause in (
            postgresql.insert(RUNS).values(number=RUN_NUMBERS.next_value()),
            sqlite.insert(RUNS).values(number=next_number),
        )
    )
    return Statement(on_postgres, columns=(*ADMITTED, "agent", "created", *FRESH, *TAKEN), on_sqlite=on_sqlite)


MAKE_RUN = _make_run()
FIND_NAMED = Statement(
    select(RUNS.c.digest, *COLUMNS).where(RUNS.c.owner == bindparam("owner_is"), RUNS.c.name == bindparam("name_is"))
)
FIND = Statement(
    select(*COLUMNS).where(
        RUNS.c.owner == bindparam("owner_is"), or_(RUNS.c.id == bindparam("id_is"), RUNS.c.name == bindparam("id_is"))
    )
)
_other = RUNS.alias()
# Its thread is idle and has no older queued run.
_before = and_(_other.c.status == "queued", _other.c.number < RUNS.c.number)
_busy = exists().where(_other.c.thread == RUNS.c.thread, or_(_other.c.status == "running", _before))
_lost = and_(RUNS.c.status == "running", RUNS.c.lease_until <= bindparam("now"))
_some = (
    select(RUNS.c.id, RUNS.c.number).order_by(RUNS.c.number).limit(bindparam("most")).with_for_update(skip_locked=True)
)
LOST = Statement(_some.where(_lost))
NEXT = Statement(_some.where(RUNS.c.owner == bindparam("of"), text(IS_OPEN), RUNS.c.status == "queued", ~_busy))
WHO_WAITS = Statement(
    select(RUNS.c.owner, func.min(RUNS.c.number)).where(RUNS.c.status == "queued").group_by(RUNS.c.owner)
)
WHO_HAS_ONE = Statement(select(RUNS.c.owner).where(RUNS.c.status == "running", RUNS.c.node == bindparam("my_node")))
TAKE = Statement(
    update(RUNS)
    .where(RUNS.c.id == bindparam("this"), RUNS.c.status != "ended")
    .values(
        status="running",
        fence=RUNS.c.fence + 1,
        # Releasing a run clears the name; a run that still has one was lost.
        losses=RUNS.c.losses + case((RUNS.c.boot.is_not(None), 1), else_=0),
        node=param("my_node", RUNS.c.node),
        boot=param("my_boot", RUNS.c.boot),
        lease_until=param("until", RUNS.c.lease_until),
        started=func.coalesce(RUNS.c.started, param("now", RUNS.c.started)),
    )
    .returning(*COLUMNS)
)

# Condition of every write for a run: the run is active under this fence.
IS_HELD = and_(RUNS.c.id == bindparam("this"), RUNS.c.fence == bindparam("my_fence"), RUNS.c.status == "running")
HELD = update(RUNS).where(IS_HELD)
RENEW = Statement(HELD.values(lease_until=param("until", RUNS.c.lease_until)))
HAND_BACK = Statement(HELD.values(lease_until=param("until", RUNS.c.lease_until), node=null(), boot=null()))
RECOVER = Statement(
    update(RUNS)
    .where(
        RUNS.c.status == "running",
        RUNS.c.node == bindparam("my_node"),
        RUNS.c.boot != bindparam("my_boot"),
    )
    .values(lease_until=param("now", RUNS.c.lease_until), node=null())
)

# Relayed requests (X3) of a lost server will get no reply.
UNANSWERED, LOST_REPLY = "unanswered", "The server was lost before the reply was whole."
GIVE_UP_RELAYED = Statement(
    update(RUNS)
    .where(RUNS.c.status == "ended", RUNS.c.node == bindparam("my_node"), RUNS.c.outcome == UNANSWERED)
    .values(outcome="lost", error=LOST_REPLY, ended=param("now", RUNS.c.ended), node=null())
)

_wanted = update(RUNS).where(RUNS.c.id == bindparam("this"), RUNS.c.cancel.is_(None))
CANCEL_QUEUED = Statement(
    _wanted.where(RUNS.c.status == "queued", RUNS.c.fence == 0).values(
        status="ended",
        outcome="cancelled",
        cancel=param("reason", RUNS.c.cancel),
        ended=param("now", RUNS.c.ended),
        last_event=param("events", RUNS.c.last_event),
    )
)
CANCEL = Statement(_wanted.where(RUNS.c.status != "ended").values(cancel=param("reason", RUNS.c.cancel)))
ADD_EVENT = insert_into(EVENTS, ("run", "number", "body"))


def admit(connection: Connection, admission: Admission, who: Claimant | None = None) -> AdmissionResult:
    """Store a run with its input, and its thread if new. The same request again changes nothing (P4).

    If the thread is free and `who` is given, claim the run for `who`. Raise Conflict for another request under its
    name.
    """
    # One admission per user and per thread at a time: two concurrent ones could both pass a limit.
    lock_user(connection, admission.owner)
    lock_thread(connection, admission.thread)
    if known := _same(connection, admission):
        return known
    lock_attachments(connection, admission)
    agent, of_thread = enter_thread(connection, admission)
    if taken := taken_by(connection, admission):
        return AdmissionResult(run=find_run(connection, admission.owner, taken), is_new=False)
    room = make_room(connection, admission, who)
    created = to_micros(admission.created)
    values: StatementValues = {
        **{name: getattr(admission, name) for name in ADMITTED},
        "agent": agent,
        "created": created,
    }
    values = {**values, **FRESH, **(_taken_by(who, admission.created) if who and room.is_free else NOT_TAKEN)}
    if made := MAKE_RUN.rows(connection, {**values, "owner_is": admission.owner}):
        add_refs(connection, admission)
        row = {**dict.fromkeys(NAMES), **values, **of_thread, "tier": made[0][0]}
        run = parse_run([row[name] for name in NAMES])
        return AdmissionResult(run=run, is_new=True, interrupted=room.interrupted)
    # Another process admitted the same name after our check.
    known = _same(connection, admission)
    if known is None:
        raise Conflict(f"Run {admission.name!r} could not be stored: its id {admission.id} is taken.")
    return known


def _taken_by(who: Claimant, now: datetime) -> StatementValues:
    """Return the columns of a run that is claimed at admission, as `TAKE` would set them."""
    at = to_micros(now)
    held = {"started": at, "node": who.node, "boot": who.boot, "lease_until": to_micros(now + who.lease)}
    return {"status": "running", "fence": 1, **held}


def enter_thread(connection: Connection, admission: Admission) -> tuple[str, StatementValues]:
    """Return the agent of a thread (C4) and the thread's columns of a run. Create a new thread; reject another user's
    (P5).
    """
    created, this = to_micros(admission.created), admission.thread
    fresh = {"id": this, "owner": admission.owner, "agent": admission.agent or admission.fallback}
    MAKE_THREAD.count(connection, {**fresh, "last_seq": 0, "created": created, "updated": created})
    known = _known_thread(connection, admission)
    if known is None:
        raise Conflict(DELETED.format(thread=this))
    agent, of_thread = known
    if admission.agent and admission.agent != agent:
        SET_AGENT.count(connection, {"this": this, "asked": admission.agent})
    return admission.agent or agent or admission.fallback, of_thread


def _known_thread(connection: Connection, admission: Admission) -> tuple[str | None, StatementValues] | None:
    """Return the agent of an existing thread and the thread's columns of a run. Another user's raises NotFound (P5)."""
    rows = THREAD.rows(connection, {"this": admission.thread})
    if not rows:
        return None
    owner, agent, last_seq, born = cast("tuple[str, str | None, int, int]", rows[0])
    if owner == DETACHED:
        raise Conflict(DELETED.format(thread=admission.thread))
    if owner != admission.owner:
        raise NotFound(what="thread", id=admission.thread)
    return agent, {"last_seq": last_seq, "thread_created": born}


def as_admitted(connection: Connection, admission: Admission) -> StoredRun:
    """Return the row that a run would have if it were admitted now. Store nothing. Another user's thread raises
    NotFound.
    """
    created = to_micros(admission.created)
    new: tuple[str | None, StatementValues] = None, {"last_seq": 0, "thread_created": created}
    agent, of_thread = _known_thread(connection, admission) or new
    tier = TIER.rows(connection, {"owner_is": admission.owner})
    values: StatementValues = {
        **{name: getattr(admission, name) for name in ADMITTED if name in NAMES},
        **FRESH,
        **of_thread,
        "agent": admission.agent or agent or admission.fallback,
        "created": created,
        "tier": cast("str", tier[0][0]) if tier else FREE_TIER,
    }
    return parse_run([values.get(name) for name in NAMES])


def again(connection: Connection, owner: str, name: str, digest: bytes) -> AdmissionResult | None:
    """Return the run that the same request made before (P4); None if there is none, or only its input can tell.

    Raise Conflict for another request under the same name.
    """
    known = _named(connection, owner, name)
    return _if_same(known[0], is_same=known[1] == digest) if known and known[1] is not None else None


def _same(connection: Connection, admission: Admission) -> AdmissionResult | None:
    """Return the run of this name if the same request made it; None if there is no such run."""
    known = _named(connection, admission.owner, admission.name)
    if known is None:
        return None
    run, digest = known
    if digest is not None and admission.digest is not None:
        return _if_same(run, is_same=digest == admission.digest)
    return _if_same(run, is_same=_canonical(run.input) == _canonical(admission.input))


def _named(connection: Connection, owner: str, name: str) -> tuple[StoredRun, bytes | None] | None:
    rows = FIND_NAMED.rows(connection, {"owner_is": owner, "name_is": name})
    return (parse_run(rows[0][1:]), cast("bytes | None", rows[0][0])) if rows else None


def _if_same(known: StoredRun, *, is_same: bool) -> AdmissionResult:
    if not is_same:
        raise Conflict(f"Run {known.name!r} was started before, with another input. Use a new runId.")
    return AdmissionResult(run=known, is_new=False)


def _canonical(json: bytes) -> bytes:
    # As text: in Python, 1, 1.0 and True are equal.
    return orjson.dumps(load(json), option=orjson.OPT_SORT_KEYS)


def claim(connection: Connection, who: Claimant, now: datetime, limit: int) -> tuple[StoredRun, ...]:
    """Claim up to `limit` runs, each under a new fence: first those whose lease expired, then queued ones.

    Of the queued runs, those of the user with the fewest active runs come first.
    """
    lost = [cast("str", row[0]) for row in LOST.rows(connection, {"now": to_micros(now), "most": limit})]
    taken = [run for id in lost if (run := _take(connection, who, now, id))]
    return (*taken, *_take_in_turn(connection, who, now, limit - len(lost)))


def _take_in_turn(connection: Connection, who: Claimant, now: datetime, limit: int) -> list[StoredRun]:
    """Claim the oldest run of the user with the fewest active runs here, again and again, so that no user blocks
    others.
    """
    taken: list[StoredRun] = []
    turns = _turns(connection, who)
    waiting: dict[str, list[tuple[str, int]]] = {}
    while turns and len(taken) < limit:
        at_work, _, owner = heappop(turns)
        if who.share and at_work >= who.share:
            break
        if owner not in waiting:
            found = NEXT.rows(connection, {"of": owner, "most": limit - len(taken)})
            waiting[owner] = [cast("tuple[str, int]", row) for row in reversed(found)]
        if not waiting[owner]:
            continue
        id, number = waiting[owner].pop()
        run = _take(connection, who, now, id)
        taken += [run] if run else []
        heappush(turns, (at_work + 1, number, owner))
    return taken


def _turns(connection: Connection, who: Claimant) -> list[tuple[int, int, str]]:
    """Return a heap of the users with queued runs: active runs here, number of the oldest queued run, user."""
    owners = cast("Sequence[tuple[str, int]]", WHO_WAITS.rows(connection, {}))
    if not owners:
        return []
    at_work = Counter([cast("str", row[0]) for row in WHO_HAS_ONE.rows(connection, {"my_node": who.node})])
    turns = [(at_work[owner], oldest, owner) for owner, oldest in owners]
    heapify(turns)
    return turns


def _take(connection: Connection, who: Claimant, now: datetime, id: str) -> StoredRun | None:
    mine: StatementValues = {"this": id, "my_node": who.node, "my_boot": who.boot}
    try:
        with savepoint(connection):
            rows = TAKE.rows(connection, {**mine, "until": to_micros(now + who.lease), "now": to_micros(now)})
    except IntegrityError:
        # Another worker activated a run of this thread after our query.
        return None
    return parse_run(rows[0]) if rows else None


def renew(connection: Connection, who: Claimant, leases: Sequence[Lease], now: datetime) -> tuple[Lease, ...]:
    """Extend leases. Return those still held."""
    until = to_micros(now + who.lease)
    ordered = sorted(leases, key=_by_run)
    return tuple(lease for lease in ordered if RENEW.count(connection, {**lease_values(lease), "until": until}))


def hand_back(connection: Connection, leases: Sequence[Lease], at: datetime) -> None:
    """Release runs: let their leases expire at a time."""
    for lease in sorted(leases, key=_by_run):
        HAND_BACK.count(connection, {**lease_values(lease), "until": to_micros(at)})


def _by_run(lease: Lease) -> str:
    # Rows are always locked in this order, so that two transactions cannot deadlock.
    return lease.run


def lease_values(lease: Lease) -> dict[str, Value]:
    """Return the parameters of `IS_HELD`."""
    return {"this": lease.run, "my_fence": lease.fence}


def recover(connection: Connection, who: Claimant, now: datetime) -> int:
    """Release the claims of an earlier boot of this node and end its relayed requests. Return the number of claims."""
    GIVE_UP_RELAYED.count(connection, {"my_node": who.node, "now": to_micros(now)})
    return RECOVER.count(connection, {"my_node": who.node, "my_boot": who.boot, "now": to_micros(now)})


def cancel(connection: Connection, run: StoredRun, cancel: Cancel) -> StoredRun:
    """Store the request to end a run. An ended run stays as it is; the first reason stays.

    A run that was never claimed ends at once, with the events given, without waiting for its thread.
    """
    this: StatementValues = {"this": run.id, "reason": cancel.reason}
    if CANCEL_QUEUED.count(connection, {**this, "now": to_micros(cancel.now), "events": len(cancel.events)}):
        rows = [{"run": run.id, "number": number, "body": body} for number, body in enumerate(cancel.events, start=1)]
        ADD_EVENT.run_many(connection, rows)
    else:
        CANCEL.count(connection, this)
    return find_run(connection, run.owner, run.id)


def cancels(connection: Connection, runs: Sequence[str]) -> tuple[str, ...]:
    """Return those of these runs that are to end."""
    query = select(RUNS.c.id).where(RUNS.c.id.in_(runs), RUNS.c.cancel.is_not(None))
    return tuple(connection.execute(query).scalars())


def opening_input(connection: Connection, thread: str, response_id: str) -> bytes | None:
    """Return the request that opened a turn; None if its run is gone."""
    query = select(RUNS.c.input).where(RUNS.c.thread == thread, RUNS.c.response_id == response_id)
    return connection.execute(query.order_by(RUNS.c.number).limit(1)).scalar_one_or_none()


def find_run(connection: Connection, owner: str, id: str) -> StoredRun:
    """Return a run by the server's id or the client's name (P7). Raise NotFound for another user's run."""
    # A client may have used the id of one run as the name of another: the server's id wins.
    rows = [parse_run(row) for row in FIND.rows(connection, {"owner_is": owner, "id_is": id})]
    found = next((run for run in rows if run.id == id), rows[0] if rows else None)
    if found is None:
        raise NotFound(what="run", id=id)
    return found


def find_by_anyone(connection: Connection, id: str) -> tuple[StoredRun, ...]:
    """Return the run of this server id, else all runs with this name, of any user. For administrators."""
    query = select(*COLUMNS).where(or_(RUNS.c.id == id, RUNS.c.name == id)).order_by(RUNS.c.number)
    rows = [parse_run(row) for row in connection.execute(query)]
    return tuple([run for run in rows if run.id == id] or rows)


def parse_run(row: Sequence[object]) -> StoredRun:
    """Build a run from its row (`COLUMNS`)."""
    values = dict(zip(NAMES, row, strict=True))
    values |= {name: from_micros(time) for name in TIMES if isinstance(time := values[name], int)}
    values |= {name: bool(values[name]) for name in FLAGS}
    return StoredRun(**cast("dict[str, Literal['queued']]", values))  # pyright: ignore[reportArgumentType] - by name
