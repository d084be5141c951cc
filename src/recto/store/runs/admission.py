"""Admission of runs: checks of the thread (P5), its other runs (P6), interrupts and limits, then the new row.

A repeated request gets the run of the first request (P4).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

import orjson
from sqlalchemy import Connection, Integer, Select, and_, bindparam, case, func, literal_column, select, text, update
from sqlalchemy.dialects import sqlite

from recto.conversation.input.input_entries import check_resume
from recto.conversation.input.run_input import ResumeItem, stored_input
from recto.conversation.json import load
from recto.conversation.log import View
from recto.errors import Conflict, LimitReached, NotFound, WireError
from recto.skills.known_data import FREE_TIER
from recto.store.database.database import lock_thread, lock_user
from recto.store.files.files import add_refs, lock_attachments
from recto.store.log.entry_rows import read_turn
from recto.store.ports import Admission, AdmissionResult, Claimant, StoredRun
from recto.store.runs.run_rows import COLUMNS, NAMES, THREAD_COLUMNS, find_run, parse_run
from recto.store.schema import DETACHED, IS_OPEN, PROFILES, RUN_NUMBERS, RUNS, SPENDING, THREADS, to_micros
from recto.store.statement import Statement, StatementValues, Value, insert_missing, insert_or, param

BUSY = "Another run of this thread is active. Wait for its end, or send multitask enqueue or interrupt."
NOT_IDLE = "Run {name!r} of this thread {does}. Wait for its end, or cancel it."
DOES = {"running": "is active", "queued": "is queued"}
INTERRUPTED = "another run was started in its place"
CANNOT_RESUME = "Another run of this thread is active or queued. Wait for its end before you answer an interrupt."
DELETED = "Thread {thread!r} was deleted just now. Send the run again."
# Seconds after which a caller at a limit may retry. Runs may end at any moment.
RETRY_SECONDS = 5.0

ADMISSION_COLUMNS = ("id", "name", "owner", "thread", "input", "response_id", "digest")
# Values in the row of a run before its first claim.
NEW_RUN: dict[str, str | int | None] = {
    "status": "queued",
    **dict.fromkeys(("fence", "losses", "failures", "too_long", "calls", "last_event"), 0),
    "entered": False,
    "can_compact": True,
    **dict.fromkeys(("started", "node", "boot", "lease_until")),
}
ADD_THREAD = insert_missing(THREADS, ("id", "owner", "agent", "last_seq", "created", "updated"))
FIND_THREAD = Statement(
    select(THREADS.c.owner, THREADS.c.agent, *THREAD_COLUMNS.values()).where(THREADS.c.id == bindparam("this"))
)
SET_AGENT = Statement(
    update(THREADS).where(THREADS.c.id == bindparam("this")).values(agent=param("new_agent", THREADS.c.agent))
)
FIND_BY_NAME = Statement(
    select(RUNS.c.digest, *COLUMNS).where(RUNS.c.owner == bindparam("owner_is"), RUNS.c.name == bindparam("name_is"))
)
_open = select(RUNS.c.id, RUNS.c.status, RUNS.c.name).where(RUNS.c.thread == bindparam("of"), text(IS_OPEN))
OPEN_RUNS = Statement(_open.order_by(RUNS.c.number))
OPEN_INPUTS = Statement(select(RUNS.c.id, RUNS.c.input).where(RUNS.c.thread == bindparam("of"), text(IS_OPEN)))
UPDATE_TO_CANCEL = update(RUNS).where(RUNS.c.id == bindparam("this"), RUNS.c.cancel.is_(None))
CANCEL = Statement(UPDATE_TO_CANCEL.where(RUNS.c.status != "ended").values(cancel=param("reason", RUNS.c.cancel)))
COUNT = literal_column("count(*)", Integer)
_is_active_here = and_(RUNS.c.status == "running", RUNS.c.node == bindparam("my_node"))
# Both counts in one query: filtered by status alone, a database would scan the runs of all users.
_active_here = func.coalesce(func.sum(case((_is_active_here, 1), else_=0)), 0)
_counts = cast("Select[*tuple[object, ...]]", select(COUNT, _active_here))
COUNT_OF_USER = Statement(_counts.select_from(RUNS).where(RUNS.c.owner == bindparam("of"), text(IS_OPEN)))
COUNT_QUEUED = Statement(select(COUNT).select_from(RUNS).where(RUNS.c.status == "queued"))
TOKENS_OF_DAY = Statement(
    select(SPENDING.c.input + SPENDING.c.output).where(
        SPENDING.c.owner == bindparam("of"), SPENDING.c.day == bindparam("on")
    )
)


_tier = select(PROFILES.c.tier).where(PROFILES.c.owner == bindparam("owner_is")).scalar_subquery()
_next_number = select(func.coalesce(func.max(RUNS.c.number), 0) + 1).scalar_subquery()
ADD_RUN = insert_or(
    RUNS,
    (*ADMISSION_COLUMNS, "agent", "created", *NEW_RUN),
    lambda insert: (
        insert.values(
            number=_next_number if isinstance(insert, sqlite.Insert) else RUN_NUMBERS.next_value(),
            tier=func.coalesce(_tier, FREE_TIER),
        )
        .on_conflict_do_nothing()
        .returning(RUNS.c.tier)
    ),
)


class _Slot(NamedTuple):
    """The result of the admission checks: True if the run can start at once, and the run that it interrupts."""

    is_free: bool
    interrupted: str | None = None


def admit(connection: Connection, admission: Admission, who: Claimant | None = None) -> AdmissionResult:
    """Store a run with its input. Create the thread if it is new. A repeated request changes nothing (P4).

    If the thread is free and `who` is given, claim the run for `who`. Raise Conflict for a different request under the
    same name.
    """
    # Admit one run per user and per thread at a time, because two concurrent admissions could both pass a limit.
    lock_user(connection, admission.owner)
    lock_thread(connection, admission.thread)
    if repetition := _find_repetition(connection, admission):
        return repetition
    lock_attachments(connection, admission)
    agent, thread_columns = enter_thread(connection, admission)
    if run := _find_same_answers(connection, admission):
        return AdmissionResult(run=find_run(connection, admission.owner, run), is_new=False)
    slot = _check_limits(connection, admission, who)
    values = make_row(admission, agent)
    if who and slot.is_free:
        # Set the same values as a claim.
        until = to_micros(admission.created + who.lease)
        values |= {"status": "running", "fence": 1, "started": values["created"]}
        values |= {"node": who.node, "boot": who.boot, "lease_until": until}
    if rows := ADD_RUN.rows(connection, {**values, "owner_is": admission.owner}):
        add_refs(connection, admission)
        row = {**dict.fromkeys(NAMES), **values, **thread_columns, "tier": rows[0][0]}
        run = parse_run([row[name] for name in NAMES])
        return AdmissionResult(run=run, is_new=True, interrupted=slot.interrupted)
    # Another process admitted a run with this name after the check above.
    repetition = _find_repetition(connection, admission)
    if repetition is None:
        raise Conflict(f"Run {admission.name!r} could not be stored: its id {admission.id} is taken.")
    return repetition


def make_row(admission: Admission, agent: str) -> dict[str, Value]:
    """Return the column values of a new run."""
    values = {name: getattr(admission, name) for name in ADMISSION_COLUMNS}
    return {**values, **NEW_RUN, "agent": agent, "created": to_micros(admission.created)}


def enter_thread(connection: Connection, admission: Admission) -> tuple[str, StatementValues]:
    """Return the agent of a thread (C4) and the columns of a run that come from the thread.

    Create a new thread. Reject a thread of another user (P5).
    """
    created, id = to_micros(admission.created), admission.thread
    values = {"id": id, "owner": admission.owner, "agent": admission.agent or admission.fallback}
    ADD_THREAD.count(connection, {**values, "last_seq": 0, "created": created, "updated": created})
    thread = find_thread(connection, admission)
    if thread is None:
        raise Conflict(DELETED.format(thread=id))
    agent, thread_columns = thread
    if admission.agent and admission.agent != agent:
        SET_AGENT.count(connection, {"this": id, "new_agent": admission.agent})
    return admission.agent or agent or admission.fallback, thread_columns


def find_thread(connection: Connection, admission: Admission) -> tuple[str | None, StatementValues] | None:
    """Return the agent of an existing thread and the columns of a run that come from the thread.

    Raise NotFound for a thread of another user (P5).
    """
    rows = FIND_THREAD.rows(connection, {"this": admission.thread})
    if not rows:
        return None
    owner, agent, last_seq, created = cast("tuple[str, str | None, int, int]", rows[0])
    if owner == DETACHED:
        raise Conflict(DELETED.format(thread=admission.thread))
    if owner != admission.owner:
        raise NotFound(what="thread", id=admission.thread)
    return agent, {"last_seq": last_seq, "thread_created": created}


def find_by_name(connection: Connection, owner: str, name: str) -> tuple[StoredRun, bytes | None] | None:
    """Return the run of this name and the digest of its request."""
    rows = FIND_BY_NAME.rows(connection, {"owner_is": owner, "name_is": name})
    return (parse_run(rows[0][1:]), cast("bytes | None", rows[0][0])) if rows else None


def repeat_admission(run: StoredRun, *, is_same: bool) -> AdmissionResult:
    """Return the run of an earlier request with the same name. Raise Conflict if that request was different."""
    if not is_same:
        raise Conflict(f"Run {run.name!r} was started before, with another input. Use a new runId.")
    return AdmissionResult(run=run, is_new=False)


def _find_repetition(connection: Connection, admission: Admission) -> AdmissionResult | None:
    match = find_by_name(connection, admission.owner, admission.name)
    if match is None:
        return None
    run, digest = match
    if digest is not None and admission.digest is not None:
        return repeat_admission(run, is_same=digest == admission.digest)
    # Compare as text, because 1, 1.0 and True are equal in Python.
    texts = {orjson.dumps(load(json), option=orjson.OPT_SORT_KEYS) for json in (run.input, admission.input)}
    return repeat_admission(run, is_same=len(texts) == 1)


def _find_same_answers(connection: Connection, admission: Admission) -> str | None:
    """Return the earlier run with the same answers to interrupts, or None if this run may answer them.

    Raise Conflict if no interrupt is pending. While a run is open, accept only a repetition of its answers, because
    that run may have answered already or may still ask.
    """
    request = admission.parsed
    if request is None or not request.resume:
        return None
    open_runs = cast("list[tuple[str, bytes]]", OPEN_INPUTS.rows(connection, {"of": admission.thread}))
    for id, body in open_runs:
        if set(_read_answers(body)) == set(request.resume):
            return id
    if open_runs:
        raise Conflict(CANNOT_RESUME)
    turn = View(entries=read_turn(connection, admission.thread))
    return check_resume(turn, request.resume, admission.created, has_messages=bool(request.messages))


def _read_answers(body: bytes) -> tuple[ResumeItem, ...]:
    try:
        return stored_input(body).resume
    except (WireError, ValueError):
        # An unreadable input has no answers. The run itself reports the problem.
        return ()


def _check_limits(connection: Connection, admission: Admission, who: Claimant | None) -> _Slot:
    """Raise if the thread or a limit does not allow a run. Interrupt the thread's run if requested."""
    bounds = admission.bounds
    others = _list_open(connection, admission.thread)
    if admission.parsed and admission.parsed.compact:
        _reject_open(others)
    if others and admission.multitask == "reject":
        raise Conflict(BUSY)
    check_tokens(connection, admission)
    counts = COUNT_OF_USER.rows(connection, {"of": admission.owner, "my_node": who.node if who else None})
    open_runs, active_runs = cast("tuple[int, int]", tuple(counts[0]))
    if bounds.user_runs and open_runs >= bounds.user_runs:
        raise _too_many(f"You have {bounds.user_runs} active or queued runs, which is the limit")
    queued = sum(1 for _, status, _ in others if status == "queued")
    if bounds.thread_queue and queued >= bounds.thread_queue:
        raise _too_many(f"{queued} runs are queued for this thread, which is the limit")
    is_free = who is not None and not others and (not who.share or active_runs < who.share)
    if bounds.queue and not is_free and cast("int", COUNT_QUEUED.rows(connection, {})[0][0]) >= bounds.queue:
        raise _too_many(f"{bounds.queue} runs are queued for this server, which is the limit")
    active = next((run for run, status, _ in others if status == "running"), None)
    if active is None or admission.multitask != "interrupt":
        return _Slot(is_free=is_free)
    CANCEL.count(connection, {"this": active, "reason": INTERRUPTED})
    return _Slot(is_free=is_free, interrupted=active)


def check_idle(connection: Connection, thread: str) -> None:
    """Raise Conflict if a run of the thread is active or queued."""
    _reject_open(_list_open(connection, thread))


def _list_open(connection: Connection, thread: str) -> list[tuple[str, str, str]]:
    """Return id, status and client name of the thread's runs that have not ended."""
    return cast("list[tuple[str, str, str]]", OPEN_RUNS.rows(connection, {"of": thread}))


def _reject_open(runs: list[tuple[str, str, str]]) -> None:
    for _, status, name in runs:
        raise Conflict(NOT_IDLE.format(name=name, does=DOES[status]))


def check_tokens(connection: Connection, admission: Admission) -> None:
    """Raise LimitReached if the user has no tokens left today."""
    if not admission.bounds.user_tokens:
        return
    now = admission.created.astimezone(UTC)
    rows = TOKENS_OF_DAY.rows(connection, {"of": admission.owner, "on": now.date().isoformat()})
    tokens, limit = cast("int", rows[0][0]) if rows else 0, admission.bounds.user_tokens
    if tokens >= limit:
        raise token_limit_error(tokens, limit, now)


def token_limit_error(tokens: int, limit: int, now: datetime) -> LimitReached:
    """Return the error for a user without tokens left today."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    problem = f"You used {tokens} of {limit} tokens today (UTC). Try again tomorrow."
    return LimitReached(problem, retry=(midnight - now).total_seconds())


def _too_many(problem: str) -> LimitReached:
    return LimitReached(f"{problem}. Wait for one to end, or cancel one.", retry=RETRY_SECONDS)
