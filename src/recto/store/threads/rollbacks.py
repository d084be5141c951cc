"""SQL of rollback and undo (R12): markers appended to the log of an idle thread. No row is changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, bindparam, select, text

from recto.conversation.log import RolledBack, Undone, VisibleNumbers
from recto.conversation.messages import UserMessage
from recto.errors import Conflict
from recto.store.database.database import lock_thread
from recto.store.log.entry_codec import MESSAGE_KINDS
from recto.store.log.entry_rows import find_user_message, read_visible
from recto.store.ports import RunChange
from recto.store.runs.admission import check_idle
from recto.store.runs.record import append
from recto.store.schema import LOG
from recto.store.statement import Statement
from recto.store.threads.thread_rows import StoredThread, check_owner, get_thread

NOTHING = "There is no rollback to take back in this thread."
# Longer lists of ids are cut.
MOST_IDS = 1_000
_is_message = text(f"kind IN ({', '.join(map(repr, MESSAGE_KINDS))})")
MESSAGES_FROM = Statement(
    select(LOG.c.seq, LOG.c.id)
    .where(LOG.c.thread == bindparam("this"), LOG.c.seq >= bindparam("first"), _is_message)
    .order_by(LOG.c.seq)
)


@dataclass(frozen=True, kw_only=True)
class RollbackOptions:
    """The thread to turn back, the id of the new marker, and the time."""

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
    """A thread after an undo: number and first ids of the restored messages, and whether another undo is possible."""

    thread: StoredThread
    count: int
    messages: tuple[str, ...]
    can_undo: bool


def roll_back(connection: Connection, owner: str, options: RollbackOptions, *, to: str) -> ThreadRolledBack:
    """Hide a user message and all that follows (R12).

    Raise NotFound if it is not visible, Conflict if a run of the thread is open.
    """
    seen = _hold(connection, owner, options.thread)
    message = find_user_message(connection, options.thread, seen, to)
    marker = RolledBack(id=options.id, time=options.now, to=message.id)
    append(connection, options.thread, RunChange(entries=(marker,)), options.now)
    return ThreadRolledBack(thread=get_thread(connection, owner, options.thread), message=message)


def undo(connection: Connection, owner: str, options: RollbackOptions) -> RollbackUndone:
    """Undo the last rollback, which hides the messages after it. Raise Conflict if there is none or a run is open."""
    before = _hold(connection, owner, options.thread)
    if not before.can_undo:
        raise Conflict(NOTHING)
    marker = Undone(id=options.id, time=options.now)
    append(connection, options.thread, RunChange(entries=(marker,)), options.now)
    after = read_visible(connection, options.thread)
    asked = {"this": options.thread, "first": after.shared_until(before)}
    rows = cast("list[tuple[int, str]]", MESSAGES_FROM.rows(connection, asked))
    returned = [id for number, id in rows if number in after and number not in before]
    return RollbackUndone(
        thread=get_thread(connection, owner, options.thread),
        count=len(returned),
        messages=tuple(returned[:MOST_IDS]),
        can_undo=after.can_undo,
    )


def _hold(connection: Connection, owner: str, thread: str) -> VisibleNumbers:
    """Lock an idle thread and return its visible numbers. Raise Conflict if a run of it is open."""
    lock_thread(connection, thread)
    check_owner(connection, owner, thread)
    check_idle(connection, thread)
    return read_visible(connection, thread)
