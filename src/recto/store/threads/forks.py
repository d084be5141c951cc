"""SQL of forks: a new thread with a copy of the visible log of another. The two are independent afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, literal, null, select, update

from recto.conversation.log import VisibleNumbers
from recto.errors import Conflict
from recto.store.database.database import lock_thread
from recto.store.log.entry_rows import find_skill, find_user_message, read_visible
from recto.store.schema import FILE_REFS, LOG, THREADS, to_micros
from recto.store.statement import insert_missing
from recto.store.threads.thread_rows import BY_USER, StoredThread, get_thread

MAKE_THREAD = insert_missing(THREADS, ("id", "owner", "agent", "title", "title_by", "last_seq", "created", "updated"))


@dataclass(frozen=True, kw_only=True)
class ForkOptions:
    """A fork of a thread: its whole view, or the part before one of its user messages."""

    thread: str
    id: str
    now: datetime
    before: str | None = None
    title: str | None = None


def fork(connection: Connection, owner: str, options: ForkOptions) -> StoredThread:
    """Copy a thread's rows to a new thread, renumbered. Runs, events and calls are not copied."""
    # Cleanup might otherwise delete the thread's files before the fork refers to them.
    lock_thread(connection, options.thread)
    source = get_thread(connection, owner, options.thread)
    seen = read_visible(connection, options.thread)
    if options.before is not None:
        seen = seen.before(find_user_message(connection, options.thread, seen, options.before).seq or 0)
    _make(connection, owner, source, options)
    last = _copy_log(connection, seen, options)
    _copy_files(connection, options)
    skill = find_skill(connection, options.id)
    values = {"last_seq": last, "skill": skill.skill, "scenario": skill.scenario} if skill else {"last_seq": last}
    connection.execute(update(THREADS).where(THREADS.c.id == options.id).values(values))
    return get_thread(connection, owner, options.id)


def _make(connection: Connection, owner: str, source: StoredThread, options: ForkOptions) -> None:
    by = connection.execute(select(THREADS.c.title_by).where(THREADS.c.id == source.id)).scalar_one()
    title, title_by = (options.title, BY_USER) if options.title else (source.title, by)
    made = {
        "id": options.id,
        "owner": owner,
        "agent": source.agent,
        "title": title,
        "title_by": title_by,
        "last_seq": 0,
    }
    now = to_micros(options.now)
    if not MAKE_THREAD.count(connection, {**made, "created": now, "updated": now}):
        raise Conflict(f"Thread {options.id!r} is there already. Fork under a new id.")


def _copy_log(connection: Connection, seen: VisibleNumbers, options: ForkOptions) -> int:
    """Copy each visible stretch, whose numbers are consecutive. Return the last number."""
    copied = 0
    for stretch in seen.ranges:
        number = (LOG.c.seq + (copied + 1 - stretch.first)).label("number")
        names = ["id", "kind", "time", "body", "tokens", "counter"]
        rows = select(literal(options.id), number, null(), *[LOG.c[name] for name in names]).where(
            LOG.c.thread == options.thread, LOG.c.seq >= stretch.first
        )
        rows = rows.where(LOG.c.seq <= stretch.last) if stretch.last is not None else rows
        copied += connection.execute(LOG.insert().from_select(["thread", "seq", "run", *names], rows)).rowcount
    return copied


def _copy_files(connection: Connection, options: ForkOptions) -> None:
    """Copy all file ids: an id that was ever shown resolves in the fork too (F4)."""
    names = ["id", "body", "created", "attachment"]
    files = select(literal(options.id), *[FILE_REFS.c[name] for name in names]).where(
        FILE_REFS.c.thread == options.thread
    )
    connection.execute(FILE_REFS.insert().from_select(["thread", *names], files))
