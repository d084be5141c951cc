"""Threads: lists, changes, forks, rollbacks (R12), deletion and cleanup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, literal, null, or_, select, text, update

from recto.conversation.json import dump
from recto.conversation.log import RolledBack, Undone, VisibleNumbers
from recto.conversation.messages import UserMessage
from recto.errors import Conflict
from recto.store.cursor import decode_cursor, encode_cursor
from recto.store.database.database import Database, Repository, lock_thread, read_transaction, write_transaction
from recto.store.log.entry_codec import MESSAGE_KINDS
from recto.store.log.entry_rows import find_skill, find_user_message, read_visible
from recto.store.ports import AdmissionThread, RunChange
from recto.store.runs.admission import check_idle
from recto.store.runs.run_progress import append_entries
from recto.store.runs.run_rows import FIND_AGENT, IS_OWN_THREAD, check_owner
from recto.store.schema import FILE_REFS, LOG, THREADS, to_micros
from recto.store.statement import SQLITE, Statement, insert_missing, param
from recto.store.threads.cleanup import CleanupCounts, CleanupProgress, Retention, clean
from recto.store.threads.deletion import delete_thread
from recto.store.threads.thread_rows import (
    BY_MODEL,
    BY_USER,
    COLUMNS,
    StoppedRun,
    StoredThread,
    get_thread,
    parse_thread,
)

# Maximum number of ids in a result; longer lists are truncated.
MOST_IDS = 1_000
ADD_THREAD = insert_missing(THREADS, ("id", "owner", "agent", "title", "title_by", "last_seq", "created", "updated"))
MESSAGES_FROM = Statement(
    select(LOG.c.seq, LOG.c.id)
    .where(LOG.c.thread == bindparam("this"), LOG.c.seq >= bindparam("first"))
    .where(text(f"kind IN ({', '.join(map(repr, MESSAGE_KINDS))})"))
    .order_by(LOG.c.seq)
)
FIND_FOR_ADMISSION = Statement(
    select(THREADS.c.owner, THREADS.c.agent, THREADS.c.skill).where(THREADS.c.id == bindparam("this"))
)
RENAME = Statement(
    update(THREADS).where(IS_OWN_THREAD).values(title=param("new_title", THREADS.c.title), title_by=BY_USER)
)
SET_AGREED = Statement(update(THREADS).where(IS_OWN_THREAD).values(agreed=param("tools", THREADS.c.agreed)))
ARCHIVE = Statement(update(THREADS).where(IS_OWN_THREAD).values(archived=param("is_archived", THREADS.c.archived)))
SET_TITLE = Statement(
    update(THREADS)
    .where(THREADS.c.id == bindparam("this"), or_(THREADS.c.title_by.is_(None), THREADS.c.title_by != BY_USER))
    .values(title=param("new_title", THREADS.c.title), title_by=BY_MODEL)
)


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
class ForkOptions:
    """Options of a fork: it copies the whole view, or the part before one of the user messages."""

    thread: str
    id: str
    now: datetime
    before: str | None = None
    title: str | None = None


@dataclass(frozen=True, kw_only=True)
class RollbackOptions:
    """Options of a rollback: the thread, the id of the new marker, and the time."""

    thread: str
    id: str
    now: datetime


@dataclass(frozen=True, kw_only=True)
class ThreadRolledBack:
    """A thread after a rollback, and the message that the user may now edit."""

    thread: StoredThread
    message: UserMessage


@dataclass(frozen=True, kw_only=True)
class RollbackUndone:
    """A thread after an undo.

    `count` is the number of restored messages, and `messages` contains their first ids. `can_undo` is True if another
    undo is possible.
    """

    thread: StoredThread
    count: int
    messages: tuple[str, ...]
    can_undo: bool


class Threads(Repository):
    """The threads of users. A thread of another user raises NotFound."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._cleanup = CleanupProgress()

    @read_transaction
    def list_page(self, connection: Connection, owner: str, query: ThreadsQuery) -> ThreadList:
        """Return threads of an owner, newest activity first. Raise WireError for an invalid cursor."""
        threads = select(*COLUMNS).where(THREADS.c.owner == owner)
        if query.agent is not None:
            threads = threads.where(THREADS.c.agent == query.agent)
        if not query.with_archived:
            threads = threads.where(THREADS.c.archived.is_(False))
        if query.search:
            threads = threads.where(_has_title(connection, query.search))
        if query.cursor is not None:
            updated, id = decode_cursor(query.cursor)
            is_same_time = and_(THREADS.c.updated == updated, THREADS.c.id < id)
            threads = threads.where(THREADS.c.updated <= updated, or_(THREADS.c.updated < updated, is_same_time))
        # Read one row more, to see if another page follows.
        threads = threads.order_by(THREADS.c.updated.desc(), THREADS.c.id.desc()).limit(query.limit + 1)
        rows = connection.execute(threads).all()
        page = rows[: query.limit]
        next_cursor = encode_cursor(page[-1].updated, page[-1].id) if len(rows) > query.limit else None
        return ThreadList(threads=tuple([parse_thread(row) for row in page]), next=next_cursor)

    @read_transaction
    def get(self, connection: Connection, owner: str, id: str) -> StoredThread:
        """Return a thread. Raise NotFound if the owner has no such thread."""
        return get_thread(connection, owner, id)

    @read_transaction
    def find_existing(self, connection: Connection, ids: Sequence[str]) -> frozenset[str]:
        """Return the given threads that exist, of any user."""
        return frozenset(connection.execute(select(THREADS.c.id).where(THREADS.c.id.in_(ids))).scalars())

    @read_transaction
    def get_agent(self, connection: Connection, owner: str, id: str) -> str | None:
        """Return the agent of a thread (C4). Return None if the owner has no such thread; admission reports that."""
        rows = FIND_AGENT.rows(connection, {"this": id, "owner_is": owner})
        return cast("str | None", rows[0][0]) if rows else None

    @read_transaction
    def get_for_admission(self, connection: Connection, owner: str, id: str) -> AdmissionThread | None:
        """Return the fields of a thread that admission needs (C4, P5, S4); None if the thread does not exist."""
        rows = FIND_FOR_ADMISSION.rows(connection, {"this": id})
        if not rows:
            return None
        thread_owner, agent, skill = cast("tuple[str, str | None, str | None]", rows[0])
        if thread_owner != owner:
            return AdmissionThread(is_own=False)
        return AdmissionThread(is_own=True, agent=agent, skill=skill)

    @write_transaction
    def rename(self, connection: Connection, owner: str, id: str, title: str) -> StoredThread:
        """Set a thread's title. Only its user can change it afterwards."""
        RENAME.count(connection, {"this": id, "owner_is": owner, "new_title": title})
        return get_thread(connection, owner, id)

    @write_transaction
    def set_agreed_tools(self, connection: Connection, owner: str, id: str, tools: Sequence[str]) -> StoredThread:
        """Set the tools that need no confirmation in a thread."""
        SET_AGREED.count(connection, {"this": id, "owner_is": owner, "tools": dump(tools).decode()})
        return get_thread(connection, owner, id)

    @write_transaction
    def archive(self, connection: Connection, owner: str, id: str, *, is_archived: bool) -> StoredThread:
        """Archive or restore a thread."""
        ARCHIVE.count(connection, {"this": id, "owner_is": owner, "is_archived": is_archived})
        return get_thread(connection, owner, id)

    @write_transaction
    def set_title_if_automatic(self, connection: Connection, thread: str, title: str) -> bool:
        """Replace the title of a thread unless its user set it. Return True if it was replaced."""
        return SET_TITLE.count(connection, {"this": thread, "new_title": title}) > 0

    async def delete(self, owner: str, id: str) -> tuple[StoppedRun, ...]:
        """Delete a thread and all its rows. Return its runs that had not ended. Their workers get LeaseLost."""
        return await delete_thread(self.database, owner, id)

    @write_transaction
    def fork(self, connection: Connection, owner: str, options: ForkOptions) -> StoredThread:
        """Copy the visible log of a thread to a new thread, renumbered. The two are independent afterwards.

        Runs, events and calls are not copied.
        """
        # Lock the source, because cleanup might otherwise delete its files before the fork refers to them.
        lock_thread(connection, options.thread)
        source = get_thread(connection, owner, options.thread)
        visible = read_visible(connection, options.thread)
        if options.before is not None:
            visible = visible.before(find_user_message(connection, options.thread, visible, options.before).seq or 0)
        title_by = connection.execute(select(THREADS.c.title_by).where(THREADS.c.id == source.id)).scalar_one()
        title, title_by = (options.title, BY_USER) if options.title else (source.title, title_by)
        row = {"id": options.id, "owner": owner, "agent": source.agent, "title": title, "title_by": title_by}
        now = to_micros(options.now)
        if not ADD_THREAD.count(connection, {**row, "last_seq": 0, "created": now, "updated": now}):
            raise Conflict(f"Thread {options.id!r} exists already. Fork under a new id.")
        last = _copy_log(connection, visible, options)
        # Copy all file ids, because an id that was ever shown must resolve in the fork too (F4).
        names = ["id", "body", "created", "attachment"]
        refs = select(literal(options.id), *[FILE_REFS.c[name] for name in names])
        refs = refs.where(FILE_REFS.c.thread == options.thread)
        connection.execute(FILE_REFS.insert().from_select(["thread", *names], refs))
        skill = find_skill(connection, options.id)
        values = {"last_seq": last, "skill": skill.skill, "scenario": skill.scenario} if skill else {"last_seq": last}
        connection.execute(update(THREADS).where(THREADS.c.id == options.id).values(values))
        return get_thread(connection, owner, options.id)

    @write_transaction
    def roll_back(self, connection: Connection, owner: str, options: RollbackOptions, *, to: str) -> ThreadRolledBack:
        """Append a marker to the log of an idle thread that hides a user message and all later messages (R12).

        Raise NotFound if the message is not visible, Conflict if a run of the thread is open.
        """
        visible = _lock_idle(connection, owner, options.thread)
        message = find_user_message(connection, options.thread, visible, to)
        marker = RolledBack(id=options.id, time=options.now, to=message.id)
        append_entries(connection, options.thread, RunChange(entries=(marker,)), options.now)
        return ThreadRolledBack(thread=get_thread(connection, owner, options.thread), message=message)

    @write_transaction
    def undo(self, connection: Connection, owner: str, options: RollbackOptions) -> RollbackUndone:
        """Undo the last rollback. Hide the messages after that rollback.

        Raise Conflict if there is no rollback to undo, or if a run of the thread is open.
        """
        before = _lock_idle(connection, owner, options.thread)
        if not before.can_undo:
            raise Conflict("This thread has no rollback to undo.")
        marker = Undone(id=options.id, time=options.now)
        append_entries(connection, options.thread, RunChange(entries=(marker,)), options.now)
        after = read_visible(connection, options.thread)
        values = {"this": options.thread, "first": after.shared_until(before)}
        rows = cast("list[tuple[int, str]]", MESSAGES_FROM.rows(connection, values))
        restored = [id for number, id in rows if number in after and number not in before]
        return RollbackUndone(
            thread=get_thread(connection, owner, options.thread),
            count=len(restored),
            messages=tuple(restored[:MOST_IDS]),
            can_undo=after.can_undo,
        )

    async def clean(self, retention: Retention) -> CleanupCounts:
        """Delete some old rows. Repeat until all counts are zero."""
        return await clean(self.database, retention, self._cleanup)


def _has_title(connection: Connection, words: str) -> ColumnElement[bool]:
    """Match words literally, ignoring case."""
    if connection.dialect.name == SQLITE:
        return func.instr(func.recto_fold(THREADS.c.title), words.casefold()) > 0
    return func.strpos(func.lower(THREADS.c.title), func.lower(words)) > 0


def _copy_log(connection: Connection, visible: VisibleNumbers, options: ForkOptions) -> int:
    """Copy each visible range. Entries within a range have consecutive numbers. Return the last number."""
    count, names = 0, ["id", "kind", "time", "body", "tokens", "counter"]
    for span in visible.ranges:
        number = (LOG.c.seq + (count + 1 - span.first)).label("number")
        rows = select(literal(options.id), number, null(), *[LOG.c[name] for name in names])
        rows = rows.where(LOG.c.thread == options.thread, LOG.c.seq >= span.first)
        rows = rows.where(LOG.c.seq <= span.last) if span.last is not None else rows
        count += connection.execute(LOG.insert().from_select(["thread", "seq", "run", *names], rows)).rowcount
    return count


def _lock_idle(connection: Connection, owner: str, thread: str) -> VisibleNumbers:
    """Lock an idle thread and return its visible numbers. Raise Conflict if a run of it is open."""
    lock_thread(connection, thread)
    check_owner(connection, owner, thread)
    check_idle(connection, thread)
    return read_visible(connection, thread)
