"""SQL of admission checks: the thread's other runs (P6) and the user's limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

from sqlalchemy import Connection, Integer, Select, and_, bindparam, case, func, literal_column, select, text, update

from recto.errors import Conflict, LimitReached
from recto.store.ports import Admission, Claimant
from recto.store.schema import IS_OPEN, RUNS, SPENDING
from recto.store.statement import Statement, param

BUSY = "Another run of this thread is active. Wait for its end, or send multitask enqueue or interrupt."
NOT_IDLE = "Run {name!r} of this thread {does}. Wait for its end, or cancel it."
DOES = {"running": "is at work", "queued": "waits for its turn"}
INTERRUPTED = "another run was started in its place"
# Seconds after which a caller at a limit may retry: runs may end at any moment.
SOON = 5.0

_open = select(RUNS.c.id, RUNS.c.status, RUNS.c.name).where(RUNS.c.thread == bindparam("of"), text(IS_OPEN))
OPEN = Statement(_open.order_by(RUNS.c.number))
CANCEL = Statement(
    update(RUNS)
    .where(RUNS.c.id == bindparam("this"), RUNS.c.cancel.is_(None), RUNS.c.status == "running")
    .values(cancel=param("reason", RUNS.c.cancel))
)
COUNT = literal_column("count(*)", Integer)
_at_work_here = and_(RUNS.c.status == "running", RUNS.c.node == bindparam("my_node"))
# One query: by status alone, a database would scan the runs of all users.
_at_work = func.coalesce(func.sum(case((_at_work_here, 1), else_=0)), 0)
_counts = cast("Select[*tuple[object, ...]]", select(COUNT, _at_work))
OF_USER = Statement(_counts.select_from(RUNS).where(RUNS.c.owner == bindparam("of"), text(IS_OPEN)))
WAITING = Statement(select(COUNT).select_from(RUNS).where(RUNS.c.status == "queued"))
SPENT = Statement(
    select(SPENDING.c.input + SPENDING.c.output).where(
        SPENDING.c.owner == bindparam("of"), SPENDING.c.day == bindparam("on")
    )
)


class Room(NamedTuple):
    """The admission decision: whether the run can start at once, and the run that it interrupts."""

    is_free: bool
    interrupted: str | None = None


def make_room(connection: Connection, admission: Admission, who: Claimant | None) -> Room:
    """Raise if the thread or a limit does not allow a run; else return if `who` can start it at once."""
    bounds = admission.bounds
    others = _open_runs(connection, admission.thread)
    if admission.parsed and admission.parsed.compact:
        _check_idle(others)
    if others and admission.multitask == "reject":
        raise Conflict(BUSY)
    check_tokens(connection, admission)
    mine = OF_USER.rows(connection, {"of": admission.owner, "my_node": who.node if who else None})
    has_open, has_at_work = cast("tuple[int, int]", tuple(mine[0]))
    if bounds.user_runs and has_open >= bounds.user_runs:
        raise _too_many(f"You have {bounds.user_runs} runs at work or waiting, which is the limit")
    waiting = sum(1 for _, status, _ in others if status == "queued")
    if bounds.thread_queue and waiting >= bounds.thread_queue:
        raise _too_many(f"{waiting} runs wait for this thread, which is the limit")
    is_free = who is not None and not others and (not who.share or has_at_work < who.share)
    if bounds.queue and not is_free and _waiting(connection) >= bounds.queue:
        raise _too_many(f"{bounds.queue} runs wait for this server, which is the limit")
    interrupted = _interrupt(connection, others) if admission.multitask == "interrupt" else None
    return Room(is_free=is_free, interrupted=interrupted)


def check_idle(connection: Connection, thread: str) -> None:
    """Raise Conflict if a run of the thread is active or queued."""
    _check_idle(_open_runs(connection, thread))


def _open_runs(connection: Connection, thread: str) -> list[tuple[str, str, str]]:
    """Return id, status and client name of the thread's runs that have not ended."""
    return cast("list[tuple[str, str, str]]", OPEN.rows(connection, {"of": thread}))


def _check_idle(others: list[tuple[str, str, str]]) -> None:
    for _, status, name in others:
        raise Conflict(NOT_IDLE.format(name=name, does=DOES[status]))


def _interrupt(connection: Connection, others: list[tuple[str, str, str]]) -> str | None:
    active = next((run for run, status, _ in others if status == "running"), None)
    if active:
        CANCEL.count(connection, {"this": active, "reason": INTERRUPTED})
    return active


def check_tokens(connection: Connection, admission: Admission) -> None:
    """Raise LimitReached if the user has no tokens left today."""
    if not admission.bounds.user_tokens:
        return
    now = admission.created.astimezone(UTC)
    rows = SPENT.rows(connection, {"of": admission.owner, "on": now.date().isoformat()})
    spent, most = cast("int", rows[0][0]) if rows else 0, admission.bounds.user_tokens
    if spent >= most:
        raise token_limit_error(spent, most, now)


def token_limit_error(spent: int, most: int, now: datetime) -> LimitReached:
    """Return the error for a user without tokens left today."""
    problem = f"You used {spent} of {most} tokens today (UTC). Try again tomorrow."
    return LimitReached(problem, retry=_until_tomorrow(now.astimezone(UTC)))


def _until_tomorrow(now: datetime) -> float:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return (midnight - now).total_seconds()


def _waiting(connection: Connection) -> int:
    return cast("int", WAITING.rows(connection, {})[0][0])


def _too_many(problem: str) -> LimitReached:
    return LimitReached(f"{problem}. Wait for one to end, or cancel one.", retry=SOON)
