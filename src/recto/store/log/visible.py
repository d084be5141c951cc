"""SQL of the view of a log, computed from the few markers that change it, whatever the length of the log."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import cast

from sqlalchemy import Connection, LargeBinary, bindparam, func, select, text

from recto.conversation.json import dump
from recto.conversation.log import (
    Entry,
    RollbackMarker,
    RolledBack,
    SkillChanged,
    StateChanged,
    VisibleNumbers,
    visible_numbers,
)
from recto.conversation.messages import UserMessage
from recto.errors import NotFound
from recto.store.log.entries import MESSAGE_KINDS
from recto.store.log.read_log import ENTRY_COLUMNS, parse_entry
from recto.store.schema import IS_LASTING, IS_STATE, IS_TURN_BACK, LOG
from recto.store.statement import Statement, batches

BATCH = 64

TURNS = Statement(
    select(*ENTRY_COLUMNS).where(LOG.c.thread == bindparam("this"), text(IS_TURN_BACK)).order_by(LOG.c.seq)
)
SKILLS = Statement(
    select(*ENTRY_COLUMNS).where(LOG.c.thread == bindparam("this"), text(IS_LASTING)).order_by(LOG.c.seq.desc())
)
STATES = Statement(
    select(LOG.c.seq)
    .where(LOG.c.thread == bindparam("this"), text(IS_STATE), LOG.c.seq <= bindparam("upto"))
    .order_by(LOG.c.seq.desc())
    .limit(bindparam("most"))
)
ONE = Statement(select(*ENTRY_COLUMNS).where(LOG.c.thread == bindparam("this"), LOG.c.seq == bindparam("number")))
BY_ID = Statement(select(*ENTRY_COLUMNS).where(LOG.c.thread == bindparam("this"), LOG.c.id == bindparam("id_is")))
_spelled = bindparam("spelled", type_=LargeBinary())
_users = (
    select(*ENTRY_COLUMNS)
    .where(LOG.c.thread == bindparam("this"), LOG.c.kind == "user", LOG.c.seq < bindparam("below"))
    .order_by(LOG.c.seq.desc())
    .limit(bindparam("most"))
)
USERS_WITH = Statement(
    _users.where(func.position(_spelled.op("IN")(LOG.c.body)) > 0),
    on_sqlite=_users.where(func.instr(LOG.c.body, _spelled) > 0),
)
BACKWARDS = Statement(
    select(*ENTRY_COLUMNS)
    .where(LOG.c.thread == bindparam("this"), LOG.c.seq < bindparam("below"))
    .order_by(LOG.c.seq.desc())
    .limit(bindparam("most"))
)


def read_visible(connection: Connection, thread: str) -> VisibleNumbers:
    """Return the numbers of a thread's visible entries."""
    turns = [cast("RollbackMarker", parse_entry(row)) for row in TURNS.rows(connection, {"this": thread})]
    if not turns:
        return VisibleNumbers()
    wanted = sorted({turn.to for turn in turns if isinstance(turn, RolledBack)})
    places: dict[str, int] = {}
    for some in batches(wanted):
        query = select(LOG.c.id, LOG.c.seq, LOG.c.kind).where(LOG.c.thread == thread, LOG.c.id.in_(some))
        places |= {row.id: row.seq for row in connection.execute(query) if row.kind in MESSAGE_KINDS}
    return visible_numbers(turns, places)


def read_turn(connection: Connection, thread: str) -> tuple[Entry, ...]:
    """Return the visible entries of the current turn: its user message and all that follows."""
    seen = read_visible(connection, thread)
    found: list[Entry] = []
    for entry in _backwards(connection, thread):
        if (entry.seq or 0) not in seen:
            continue
        found.append(entry)
        if isinstance(entry, UserMessage):
            break
    return tuple(reversed(found))


def find_user_message(connection: Connection, thread: str, seen: VisibleNumbers, id: str) -> UserMessage:
    """Return a visible user message by its id, else the newest that arrived under it (P3). Raise NotFound if none."""
    named = map(parse_entry, BY_ID.rows(connection, {"this": thread, "id_is": id}))
    for entry in chain(named, _came_as(connection, thread, id)):
        if isinstance(entry, UserMessage) and id in (entry.id, entry.client_id) and (entry.seq or 0) in seen:
            return entry
    raise NotFound(what="user message", id=id)


def _came_as(connection: Connection, thread: str, id: str) -> Iterator[Entry]:
    """Yield user messages that may have arrived under an id, newest first. Searches the stored bytes."""
    asked = {"this": thread, "spelled": b'"client_id":' + dump(id), "most": BATCH}
    below = 2**62
    while rows := USERS_WITH.rows(connection, {**asked, "below": below}):
        for entry in map(parse_entry, rows):
            below = entry.seq or 0
            yield entry


def find_skill(connection: Connection, thread: str) -> SkillChanged | None:
    """Return the newest visible skill change."""
    seen = read_visible(connection, thread)
    found = (parse_entry(row) for row in SKILLS.rows(connection, {"this": thread}))
    return next((one for one in found if isinstance(one, SkillChanged) and (one.seq or 0) in seen), None)


def find_state(
    connection: Connection, thread: str, seen: VisibleNumbers | None = None, upto: int = 2**62
) -> StateChanged | None:
    """Return the newest visible state change up to a number, without reading older ones."""
    seen = read_visible(connection, thread) if seen is None else seen
    while rows := STATES.rows(connection, {"this": thread, "upto": upto, "most": BATCH}):
        numbers = cast("list[int]", [row[0] for row in rows])
        for number in (number for number in numbers if number in seen):
            return cast("StateChanged", parse_entry(ONE.rows(connection, {"this": thread, "number": number})[0]))
        upto = numbers[-1] - 1
    return None


def _backwards(connection: Connection, thread: str) -> Iterator[Entry]:
    below = 2**62
    while rows := BACKWARDS.rows(connection, {"this": thread, "below": below, "most": BATCH}):
        for row in rows:
            entry = parse_entry(row)
            below = entry.seq or 0
            yield entry
