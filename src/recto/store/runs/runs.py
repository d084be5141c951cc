"""Runs: admission, claims, leases, progress and lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from heapq import heapify, heappop, heappush
from typing import cast

from sqlalchemy import Connection, and_, bindparam, case, exists, func, literal, null, or_, select, text, update
from sqlalchemy.exc import IntegrityError

from recto.skills.known_data import FREE_TIER
from recto.store.cursor import decode_cursor, encode_cursor
from recto.store.database.database import Repository, priority_write, read_transaction, write_transaction
from recto.store.ports import Admission, AdmissionResult, Cancel, Claimant, Lease, RecordResult, RunChange, StoredRun
from recto.store.runs.admission import (
    CANCEL,
    UPDATE_TO_CANCEL,
    admit,
    find_by_name,
    find_thread,
    make_row,
    repeat_admission,
)
from recto.store.runs.relays import UNANSWERED
from recto.store.runs.run_progress import measure_change, record
from recto.store.runs.run_rows import (
    ADD_EVENT,
    COLUMNS,
    NAMES,
    UPDATE_HELD,
    check_owner,
    find_run,
    lease_values,
    parse_run,
)
from recto.store.schema import IS_OPEN, PROFILES, RUNS, to_micros
from recto.store.statement import Statement, StatementValues, param, savepoint

LOST_REPLY = "The server was lost before the reply was whole."
_other = RUNS.alias()
# A run is blocked while its thread has an active run or an older queued one.
_before = and_(_other.c.status == "queued", _other.c.number < RUNS.c.number)
_is_blocked = exists().where(_other.c.thread == RUNS.c.thread, or_(_other.c.status == "running", _before))
_candidates = (
    select(RUNS.c.id, RUNS.c.number).order_by(RUNS.c.number).limit(bindparam("most")).with_for_update(skip_locked=True)
)
EXPIRED = Statement(_candidates.where(RUNS.c.status == "running", RUNS.c.lease_until <= bindparam("now")))
NEXT = Statement(
    _candidates.where(RUNS.c.owner == bindparam("of"), text(IS_OPEN), RUNS.c.status == "queued", ~_is_blocked)
)
QUEUED_OWNERS = Statement(
    select(RUNS.c.owner, func.min(RUNS.c.number)).where(RUNS.c.status == "queued").group_by(RUNS.c.owner)
)
ACTIVE_OWNERS = Statement(select(RUNS.c.owner).where(RUNS.c.status == "running", RUNS.c.node == bindparam("my_node")))
CLAIM = Statement(
    update(RUNS)
    .where(RUNS.c.id == bindparam("this"), RUNS.c.status != "ended")
    .values(
        status="running",
        fence=RUNS.c.fence + 1,
        # Releasing a run clears the name of the boot, so a run that still has one lost its worker.
        losses=RUNS.c.losses + case((RUNS.c.boot.is_not(None), 1), else_=0),
        node=param("my_node", RUNS.c.node),
        boot=param("my_boot", RUNS.c.boot),
        lease_until=param("until", RUNS.c.lease_until),
        started=func.coalesce(RUNS.c.started, param("now", RUNS.c.started)),
    )
    .returning(*COLUMNS)
)
RENEW = Statement(UPDATE_HELD.values(lease_until=param("until", RUNS.c.lease_until)))
RELEASE = Statement(UPDATE_HELD.values(lease_until=param("until", RUNS.c.lease_until), node=null(), boot=null()))
RECOVER = Statement(
    update(RUNS)
    .where(RUNS.c.status == "running", RUNS.c.node == bindparam("my_node"), RUNS.c.boot != bindparam("my_boot"))
    .values(lease_until=param("now", RUNS.c.lease_until), node=null())
)
# Statement that ends the relayed requests (X3) of a lost server, because they will get no reply.
END_RELAYED = Statement(
    update(RUNS)
    .where(RUNS.c.status == "ended", RUNS.c.node == bindparam("my_node"), RUNS.c.outcome == UNANSWERED)
    .values(outcome="lost", error=LOST_REPLY, ended=param("now", RUNS.c.ended), node=null())
)
CANCEL_QUEUED = Statement(
    UPDATE_TO_CANCEL.where(RUNS.c.status == "queued", RUNS.c.fence == 0).values(
        status="ended",
        outcome="cancelled",
        cancel=param("reason", RUNS.c.cancel),
        ended=param("now", RUNS.c.ended),
        last_event=param("events", RUNS.c.last_event),
    )
)
OPEN_RUNS = Statement(
    select(*COLUMNS)
    .where(RUNS.c.thread == bindparam("this"), RUNS.c.owner == bindparam("owner_is"), text(IS_OPEN))
    .order_by(RUNS.c.number)
)
# Lists omit the input, which may be long.
LIST_COLUMNS = [literal(b"").label("input") if column is RUNS.c.input else column for column in COLUMNS]


@dataclass(frozen=True, kw_only=True)
class RunList:
    """Runs of a thread, newest first, without their input, and the cursor of the next page."""

    runs: tuple[StoredRun, ...]
    next: str | None


class Runs(Repository):
    """The runs of threads: their queue, leases and progress."""

    async def admit(self, admission: Admission, who: Claimant | None = None) -> AdmissionResult:
        """Store a run with its input, and claim it for `who` if its thread is free.

        A repeated request returns the same run (P4). Raise Conflict for a different request under the same name.
        """
        work = partial(admit, admission=admission, who=who)
        return await self.database.write(work, size=len(admission.input))

    @read_transaction
    def preview_admission(self, connection: Connection, admission: Admission) -> StoredRun:
        """Return the row that a run would have if it were admitted now. Raise NotFound for another user's thread."""
        new_thread = None, {"last_seq": 0, "thread_created": to_micros(admission.created)}
        agent, thread_columns = find_thread(connection, admission) or new_thread
        tier = connection.execute(select(PROFILES.c.tier).where(PROFILES.c.owner == admission.owner)).scalar()
        values = make_row(admission, admission.agent or agent or admission.fallback)
        values |= {**thread_columns, "tier": tier or FREE_TIER}
        return parse_run([values.get(name) for name in NAMES])

    @read_transaction
    def find(self, connection: Connection, owner: str, id: str) -> StoredRun:
        """Return a run by the server's id or the client's name (P7). Raise NotFound for another user's run."""
        return find_run(connection, owner, id)

    @read_transaction
    def find_of_any_user(self, connection: Connection, id: str) -> tuple[StoredRun, ...]:
        """Return the run with this server id, else all runs with this name, of any user. Only for administrators."""
        query = select(*COLUMNS).where(or_(RUNS.c.id == id, RUNS.c.name == id)).order_by(RUNS.c.number)
        runs = [parse_run(row) for row in connection.execute(query)]
        return tuple([run for run in runs if run.id == id] or runs)

    @read_transaction
    def read_opening_input(self, connection: Connection, thread: str, response_id: str) -> bytes | None:
        """Return the request that opened a turn; None if the run of that request was deleted."""
        query = select(RUNS.c.input).where(RUNS.c.thread == thread, RUNS.c.response_id == response_id)
        return connection.execute(query.order_by(RUNS.c.number).limit(1)).scalar_one_or_none()

    @read_transaction
    def find_repeated(self, connection: Connection, owner: str, name: str, digest: bytes) -> AdmissionResult | None:
        """Return the run of an earlier identical request (P4).

        Return None if there is no run of this name, or if its row has no digest and the inputs must be compared. Raise
        Conflict for a different request under the same name.
        """
        match = find_by_name(connection, owner, name)
        if match is None or match[1] is None:
            return None
        return repeat_admission(match[0], is_same=match[1] == digest)

    @write_transaction
    def cancel(self, connection: Connection, run: StoredRun, cancel: Cancel) -> StoredRun:
        """Store the request to end a run. An ended run does not change, and the first reason is final.

        A run that was never claimed ends immediately, with the given events, without waiting for its thread.
        """
        values: StatementValues = {"this": run.id, "reason": cancel.reason}
        if CANCEL_QUEUED.count(connection, {**values, "now": to_micros(cancel.now), "events": len(cancel.events)}):
            rows = [{"run": run.id, "number": n, "body": body} for n, body in enumerate(cancel.events, start=1)]
            ADD_EVENT.run_many(connection, rows)
        else:
            CANCEL.count(connection, values)
        return find_run(connection, run.owner, run.id)

    @write_transaction
    def claim(self, connection: Connection, who: Claimant, now: datetime, limit: int) -> tuple[StoredRun, ...]:
        """Claim up to `limit` runs, each under a new fence: first runs with an expired lease, then queued runs.

        Among the queued runs, prefer the user with the fewest active runs.
        """
        expired = [cast("str", row[0]) for row in EXPIRED.rows(connection, {"now": to_micros(now), "most": limit})]
        runs = [run for id in expired if (run := _claim(connection, who, now, id))]
        return (*runs, *_claim_fairly(connection, who, now, limit - len(expired)))

    @priority_write
    def renew(self, connection: Connection, who: Claimant, leases: Sequence[Lease], now: datetime) -> tuple[Lease, ...]:
        """Extend leases. Return those still held."""
        until = to_micros(now + who.lease)
        return tuple(
            lease
            for lease in sorted(leases, key=_by_run)
            if RENEW.count(connection, {**lease_values(lease), "until": until})
        )

    @priority_write
    def release(self, connection: Connection, leases: Sequence[Lease], at: datetime) -> None:
        """Release runs: set the time at which their leases expire."""
        for lease in sorted(leases, key=_by_run):
            RELEASE.count(connection, {**lease_values(lease), "until": to_micros(at)})

    @write_transaction
    def recover(self, connection: Connection, who: Claimant, now: datetime) -> int:
        """Release the claims of an earlier boot of this node and end its relayed requests. Return the number of
        claims.
        """
        END_RELAYED.count(connection, {"my_node": who.node, "now": to_micros(now)})
        return RECOVER.count(connection, {"my_node": who.node, "my_boot": who.boot, "now": to_micros(now)})

    @priority_write
    def list_cancelled(self, connection: Connection, ids: Sequence[str]) -> tuple[str, ...]:
        """Return the given runs that have a request to end."""
        query = select(RUNS.c.id).where(RUNS.c.id.in_(ids), RUNS.c.cancel.is_not(None))
        return tuple(connection.execute(query).scalars())

    async def record(self, lease: Lease, change: RunChange, now: datetime) -> RecordResult:
        """Write a change under its lease. Raise LeaseLost and write nothing if another worker has the run."""
        work = partial(record, lease=lease, change=change, now=now)
        return await self.database.write(work, size=measure_change(change))

    @read_transaction
    def list_page(self, connection: Connection, owner: str, id: str, cursor: str | None, limit: int) -> RunList:
        """Return runs of a thread, newest first (P8)."""
        check_owner(connection, owner, id)
        query = select(*LIST_COLUMNS).where(RUNS.c.thread == id)
        if cursor is not None:
            last = select(RUNS.c.number).where(RUNS.c.thread == id, RUNS.c.id == decode_cursor(cursor)[1])
            query = query.where(RUNS.c.number < last.scalar_subquery())
        # Read one row more, to see if another page follows.
        rows = connection.execute(query.order_by(RUNS.c.number.desc()).limit(limit + 1)).all()
        runs = tuple([parse_run(row) for row in rows[:limit]])
        return RunList(runs=runs, next=encode_cursor(0, runs[-1].id) if len(rows) > limit else None)

    @read_transaction
    def list_open(self, connection: Connection, owner: str, id: str) -> tuple[StoredRun, ...]:
        """Return the runs of a thread that have not ended, the active one first; none for another user's thread."""
        return tuple([parse_run(row) for row in OPEN_RUNS.rows(connection, {"this": id, "owner_is": owner})])


def _claim_fairly(connection: Connection, who: Claimant, now: datetime, limit: int) -> list[StoredRun]:
    """Claim the oldest run of the user with the fewest active runs on this node. Repeat up to the limit.

    This prevents one user from blocking the others.
    """
    owners = cast("Sequence[tuple[str, int]]", QUEUED_OWNERS.rows(connection, {}))
    if not owners:
        return []
    active = Counter([cast("str", row[0]) for row in ACTIVE_OWNERS.rows(connection, {"my_node": who.node})])
    # Heap of tuples: active runs on this node, number of the oldest queued run, user.
    turns = [(active[owner], oldest, owner) for owner, oldest in owners]
    heapify(turns)
    runs: list[StoredRun] = []
    queued: dict[str, list[tuple[str, int]]] = {}
    while turns and len(runs) < limit:
        active_runs, _, owner = heappop(turns)
        if who.share and active_runs >= who.share:
            break
        if owner not in queued:
            rows = NEXT.rows(connection, {"of": owner, "most": limit - len(runs)})
            queued[owner] = [cast("tuple[str, int]", row) for row in reversed(rows)]
        if not queued[owner]:
            continue
        id, number = queued[owner].pop()
        run = _claim(connection, who, now, id)
        runs += [run] if run else []
        heappush(turns, (active_runs + 1, number, owner))
    return runs


def _claim(connection: Connection, who: Claimant, now: datetime, id: str) -> StoredRun | None:
    values: StatementValues = {"this": id, "my_node": who.node, "my_boot": who.boot}
    try:
        with savepoint(connection):
            rows = CLAIM.rows(connection, {**values, "until": to_micros(now + who.lease), "now": to_micros(now)})
    except IntegrityError:
        # Another worker activated a run of this thread after the query above.
        return None
    return parse_run(rows[0]) if rows else None


def _by_run(lease: Lease) -> str:
    # Always lock rows in this order, so that two transactions cannot deadlock.
    return lease.run
