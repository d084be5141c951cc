"""SQL of threads. Every query has an owner: for other users a thread does not exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    update,
)

from recto.conversation.json import dump, load, parts_of
from recto.errors import NotFound
from recto.store.cursor import decode_cursor, encode_cursor
from recto.store.ports import AdmissionThread, StoredRun
from recto.store.runs.calls import ThreadCall, newest_of_thread
from recto.store.runs.run_queue import COLUMNS as RUN_COLUMNS
from recto.store.runs.run_queue import parse_run
from recto.store.schema import IS_OPEN, RUNS, THREADS, from_micros
from recto.store.statement import SQLITE, Statement, param

# Authors of titles.
BY_USER, BY_MODEL = "user", "model"


@dataclass(frozen=True, kw_only=True)
class StoredThread:
    """A thread's row. `active` is its active run. Archiving only affects lists.

    Tools in `agreed` need no confirmation in this thread.
    """

    id: str
    title: str | None
    agent: str | None
    skill: str | None
    scenario: str | None
    created: datetime
    updated: datetime
    archived: bool = False
    agreed: tuple[str, ...] = ()
    active: str | None


@dataclass(frozen=True, kw_only=True)
class ThreadsQuery:
    """Filters and page of a list of threads."""

    cursor: str | None = None
    limit: int = 50
    search: str | None = None
    agent: str | None = None
    with_archived: bool = True


@dataclass(frozen=True, kw_only=True)
class ThreadList:
    """Threads, newest activity first, and the cursor of the next page."""

    threads: tuple[StoredThread, ...]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class RunList:
    """Runs of a thread, newest first, without their input, and the cursor of the next page."""

    runs: tuple[StoredRun, ...]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class StoppedRun:
    """A run that had not ended when its thread was deleted. Its worker and readers must stop."""

    id: str
    name: str
    thread: str
    last_event: int


# A literal, so that the partial index of running runs applies.
_running = and_(RUNS.c.thread == THREADS.c.id, RUNS.c.status == literal_column("'running'"))
_active = select(RUNS.c.id).where(_running).scalar_subquery().label("active")
NAMES = [field.name for field in fields(StoredThread)]
COLUMNS = [*[THREADS.c[name] for name in NAMES[:-1]], _active]
# Inputs may be long, and lists do not show them.
LISTED = [literal(b"").label("input") if column is RUNS.c.input else column for column in RUN_COLUMNS]

OWNED = Statement(
    select(THREADS.c.agent).where(THREADS.c.id == bindparam("this"), THREADS.c.owner == bindparam("owner_is"))
)
AT_ADMISSION = Statement(
    select(THREADS.c.owner, THREADS.c.agent, THREADS.c.skill).where(THREADS.c.id == bindparam("this"))
)
GET = Statement(select(*COLUMNS).where(THREADS.c.id == bindparam("this"), THREADS.c.owner == bindparam("owner_is")))
RENAME = Statement(
    update(THREADS)
    .where(THREADS.c.id == bindparam("this"), THREADS.c.owner == bindparam("owner_is"))
    .values(title=param("new_title", THREADS.c.title), title_by=BY_USER)
)
AGREE = Statement(
    update(THREADS)
    .where(THREADS.c.id == bindparam("this"), THREADS.c.owner == bindparam("owner_is"))
    .values(agreed=param("tools", THREADS.c.agreed))
)
ARCHIVE = Statement(
    update(THREADS)
    .where(THREADS.c.id == bindparam("this"), THREADS.c.owner == bindparam("owner_is"))
    .values(archived=param("is_archived", THREADS.c.archived))
)
OPEN_RUNS = Statement(
    select(*RUN_COLUMNS)
    .where(RUNS.c.thread == bindparam("this"), RUNS.c.owner == bindparam("owner_is"), text(IS_OPEN))
    .order_by(RUNS.c.number)
)
SET_TITLE = Statement(
    update(THREADS)
    .where(THREADS.c.id == bindparam("this"), or_(THREADS.c.title_by.is_(None), THREADS.c.title_by != BY_USER))
    .values(title=param("new_title", THREADS.c.title), title_by=BY_MODEL)
)


def check_owner(connection: Connection, owner: str, id: str) -> None:
    """Raise NotFound if the owner has no such thread."""
    if not OWNED.rows(connection, {"this": id, "owner_is": owner}):
        raise NotFound(what="thread", id=id)


def known(connection: Connection, ids: Sequence[str]) -> frozenset[str]:
    """Return those of these threads that exist, of any user."""
    return frozenset(connection.execute(select(THREADS.c.id).where(THREADS.c.id.in_(ids))).scalars())


def agent_of(connection: Connection, owner: str, id: str) -> str | None:
    """Return the agent of a thread (C4); None if the owner has no such thread, which admission reports."""
    rows = OWNED.rows(connection, {"this": id, "owner_is": owner})
    return cast("str | None", rows[0][0]) if rows else None


def for_admission(connection: Connection, owner: str, id: str) -> AdmissionThread | None:
    """Return what admission needs of a thread (C4, P5, S4); None if it does not exist."""
    rows = AT_ADMISSION.rows(connection, {"this": id})
    if not rows:
        return None
    found, agent, skill = cast("tuple[str, str | None, str | None]", rows[0])
    return AdmissionThread(is_own=True, agent=agent, skill=skill) if found == owner else AdmissionThread(is_own=False)


def get_thread(connection: Connection, owner: str, id: str) -> StoredThread:
    """Return a thread. Raise NotFound if the owner has no such thread."""
    rows = GET.rows(connection, {"this": id, "owner_is": owner})
    if not rows:
        raise NotFound(what="thread", id=id)
    return _thread(rows[0])


def list_threads(connection: Connection, owner: str, query: ThreadsQuery) -> ThreadList:
    """Return threads of an owner, newest activity first. Raise WireError for an invalid cursor."""
    found = select(*COLUMNS).where(THREADS.c.owner == owner)
    if query.agent is not None:
        found = found.where(THREADS.c.agent == query.agent)
    if not query.with_archived:
        found = found.where(THREADS.c.archived.is_(False))
    if query.search:
        found = found.where(_has_title(connection, query.search))
    if query.cursor is not None:
        updated, id = decode_cursor(query.cursor)
        same = and_(THREADS.c.updated == updated, THREADS.c.id < id)
        found = found.where(THREADS.c.updated <= updated, or_(THREADS.c.updated < updated, same))
    # One row more shows if another page follows.
    ordered = found.order_by(THREADS.c.updated.desc(), THREADS.c.id.desc()).limit(query.limit + 1)
    rows = connection.execute(ordered).all()
    kept = rows[: query.limit]
    more = encode_cursor(kept[-1].updated, kept[-1].id) if len(rows) > query.limit else None
    return ThreadList(threads=tuple([_thread(row) for row in kept]), next=more)


def _has_title(connection: Connection, words: str) -> ColumnElement[bool]:
    """Match words literally, ignoring case."""
    if connection.dialect.name == SQLITE:
        return func.instr(func.recto_fold(THREADS.c.title), words.casefold()) > 0
    return func.strpos(func.lower(THREADS.c.title), func.lower(words)) > 0


def rename(connection: Connection, owner: str, id: str, title: str) -> StoredThread:
    """Set a thread's title. Only its user can change it afterwards."""
    RENAME.count(connection, {"this": id, "owner_is": owner, "new_title": title})
    return get_thread(connection, owner, id)


def agree(connection: Connection, owner: str, id: str, tools: Sequence[str]) -> StoredThread:
    """Set the tools that need no confirmation in a thread."""
    AGREE.count(connection, {"this": id, "owner_is": owner, "tools": dump(tools).decode()})
    return get_thread(connection, owner, id)


def archive(connection: Connection, owner: str, id: str, *, is_archived: bool) -> StoredThread:
    """Archive or restore a thread."""
    ARCHIVE.count(connection, {"this": id, "owner_is": owner, "is_archived": is_archived})
    return get_thread(connection, owner, id)


def set_title_if_automatic(connection: Connection, id: str, title: str) -> bool:
    """Replace the title of a thread unless its user set it. Return True if it was replaced."""
    return SET_TITLE.count(connection, {"this": id, "new_title": title}) > 0


def runs_of_thread(connection: Connection, owner: str, id: str, cursor: str | None, limit: int) -> RunList:
    """Return runs of a thread, newest first (P8)."""
    check_owner(connection, owner, id)
    query = select(*LISTED).where(RUNS.c.thread == id)
    if cursor is not None:
        last = select(RUNS.c.number).where(RUNS.c.thread == id, RUNS.c.id == decode_cursor(cursor)[1])
        query = query.where(RUNS.c.number < last.scalar_subquery())
    rows = connection.execute(query.order_by(RUNS.c.number.desc()).limit(limit + 1)).all()
    runs = tuple([parse_run(row) for row in rows[:limit]])
    return RunList(runs=runs, next=encode_cursor(0, runs[-1].id) if len(rows) > limit else None)


def calls_of_thread(connection: Connection, owner: str, id: str, limit: int) -> tuple[ThreadCall, ...]:
    """Return the newest model calls of a thread, newest first, without pages and manifests."""
    check_owner(connection, owner, id)
    return newest_of_thread(connection, id, limit)


def open_runs(connection: Connection, owner: str, id: str) -> tuple[StoredRun, ...]:
    """Return the runs of a thread that have not ended, the active one first; none for another user's thread."""
    return tuple([parse_run(row) for row in OPEN_RUNS.rows(connection, {"this": id, "owner_is": owner})])


def _thread(row: Sequence[object]) -> StoredThread:
    values = dict(zip(NAMES, row, strict=True))
    values |= {name: from_micros(cast("int", values[name])) for name in ("created", "updated")}
    values["archived"] = bool(values["archived"])
    values["agreed"] = tuple(map(str, parts_of(load(str(values["agreed"])))))
    return StoredThread(**cast("dict[str, datetime]", values))  # pyright: ignore[reportArgumentType] - by name
