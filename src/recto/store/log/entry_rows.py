"""Queries for log entries and for the view of a log.

The view is computed from the few markers that change it, so the cost does not depend on the length of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from recto.page.text.tokens import note_tokens
from recto.store.log.entry_codec import MESSAGE_KINDS, decode_entry
from recto.store.ports import StoredRun
from recto.store.schema import IS_LASTING, IS_ROLLBACK, IS_STATE, LOG, from_micros, to_micros
from recto.store.statement import Statement, batches

BATCH = 64
# Greater than the number of any entry.
MAX_SEQ = 2**62
ENTRY_COLUMNS = (LOG.c.kind, LOG.c.body, LOG.c.id, LOG.c.seq, LOG.c.time, LOG.c.tokens, LOG.c.counter)
_of_thread = select(*ENTRY_COLUMNS).where(LOG.c.thread == bindparam("this"))
_before = _of_thread.where(LOG.c.seq < bindparam("below")).order_by(LOG.c.seq.desc()).limit(bindparam("most"))
ENTRIES = Statement(
    _of_thread.where(LOG.c.seq > bindparam("after"), LOG.c.seq <= bindparam("upto")).order_by(LOG.c.seq)
)
ENTRIES_BEFORE = Statement(_before)
FIND_BY_NUMBER = Statement(_of_thread.where(LOG.c.seq == bindparam("number")))
FIND_BY_ID = Statement(_of_thread.where(LOG.c.id == bindparam("id_is")))
ROLLBACKS = Statement(_of_thread.where(text(IS_ROLLBACK)).order_by(LOG.c.seq))
LASTING_ENTRIES = Statement(
    _of_thread.where(text(IS_LASTING), LOG.c.seq <= bindparam("upto")).order_by(LOG.c.seq.desc())
)
STATE_NUMBERS = Statement(
    select(LOG.c.seq)
    .where(LOG.c.thread == bindparam("this"), text(IS_STATE), LOG.c.seq <= bindparam("upto"))
    .order_by(LOG.c.seq.desc())
    .limit(bindparam("most"))
)
_needle = bindparam("needle", type_=LargeBinary())
_users = _before.where(LOG.c.kind == "user")
USERS_WITH = Statement(
    _users.where(func.position(_needle.op("IN")(LOG.c.body)) > 0),
    on_sqlite=_users.where(func.instr(LOG.c.body, _needle) > 0),
)


def parse_entry(row: Sequence[object]) -> Entry:
    """Return an entry from its row (`ENTRY_COLUMNS`), with its stored token count."""
    kind, body, id, seq, at, tokens, counter = cast("tuple[str, bytes, str, int, int, int | None, str]", tuple(row))
    entry = decode_entry(kind, body, id=id, seq=seq, time=from_micros(at))
    if tokens is not None:
        note_tokens(entry, counter, tokens)
    return entry


def read_entries(connection: Connection, thread: str, after: int = 0, upto: int = MAX_SEQ) -> tuple[Entry, ...]:
    """Return the entries of a log after a number and up to another, in order."""
    return tuple(map(parse_entry, ENTRIES.rows(connection, {"this": thread, "after": after, "upto": upto})))


def read_log_of_run(connection: Connection, run: StoredRun) -> tuple[Entry, ...]:
    """Return the log of a run's thread up to the last entry that the run wrote.

    If the run wrote none, return the entries up to the run's end.
    """
    newest = select(func.max(LOG.c.seq)).where(LOG.c.thread == run.thread)
    last = connection.execute(newest.where(LOG.c.run == run.id)).scalar_one()
    if last is None and run.ended:
        last = connection.execute(newest.where(LOG.c.time <= to_micros(run.ended))).scalar_one()
    return read_entries(connection, run.thread, upto=last or 0)


def read_visible(connection: Connection, thread: str) -> VisibleNumbers:
    """Return the numbers of a thread's visible entries."""
    markers = [cast("RollbackMarker", parse_entry(row)) for row in ROLLBACKS.rows(connection, {"this": thread})]
    if not markers:
        return VisibleNumbers()
    targets = sorted({marker.to for marker in markers if isinstance(marker, RolledBack)})
    numbers: dict[str, int] = {}
    for batch in batches(targets):
        query = select(LOG.c.id, LOG.c.seq, LOG.c.kind).where(LOG.c.thread == thread, LOG.c.id.in_(batch))
        numbers |= {row.id: row.seq for row in connection.execute(query) if row.kind in MESSAGE_KINDS}
    return visible_numbers(markers, numbers)


def read_turn(connection: Connection, thread: str) -> tuple[Entry, ...]:
    """Return the visible entries of the current turn: its user message and all that follows."""
    visible = read_visible(connection, thread)
    turn: list[Entry] = []
    for entry in _iterate(connection, ENTRIES_BEFORE, {"this": thread}):
        if (entry.seq or 0) not in visible:
            continue
        turn.append(entry)
        if isinstance(entry, UserMessage):
            break
    return tuple(reversed(turn))


def find_user_message(connection: Connection, thread: str, visible: VisibleNumbers, id: str) -> UserMessage:
    """Return a visible user message by its id, else by the id that its client sent (P3).

    If several messages have the same client id, return the newest. Raise NotFound if there is none.
    """
    by_id = map(parse_entry, FIND_BY_ID.rows(connection, {"this": thread, "id_is": id}))
    # Search the stored bytes, because client ids have no column.
    by_client_id = _iterate(connection, USERS_WITH, {"this": thread, "needle": b'"client_id":' + dump(id)})
    for entry in chain(by_id, by_client_id):
        if isinstance(entry, UserMessage) and id in (entry.id, entry.client_id) and (entry.seq or 0) in visible:
            return entry
    raise NotFound(what="user message", id=id)


def find_skill(
    connection: Connection, thread: str, visible: VisibleNumbers | None = None, upto: int = MAX_SEQ
) -> SkillChanged | None:
    """Return the newest visible skill change up to a number."""
    visible = read_visible(connection, thread) if visible is None else visible
    entries = map(parse_entry, LASTING_ENTRIES.rows(connection, {"this": thread, "upto": upto}))
    return next((entry for entry in entries if isinstance(entry, SkillChanged) and (entry.seq or 0) in visible), None)


def find_state(
    connection: Connection, thread: str, visible: VisibleNumbers | None = None, upto: int = MAX_SEQ
) -> StateChanged | None:
    """Return the newest visible state change up to a number, without reading older ones."""
    visible = read_visible(connection, thread) if visible is None else visible
    while rows := STATE_NUMBERS.rows(connection, {"this": thread, "upto": upto, "most": BATCH}):
        numbers = cast("list[int]", [row[0] for row in rows])
        for number in (number for number in numbers if number in visible):
            row = FIND_BY_NUMBER.rows(connection, {"this": thread, "number": number})[0]
            return cast("StateChanged", parse_entry(row))
        upto = numbers[-1] - 1
    return None


def _iterate(connection: Connection, statement: Statement, values: dict[str, str | bytes]) -> Iterator[Entry]:
    """Yield the entries that a statement selects, newest first, in batches."""
    below = MAX_SEQ
    while rows := statement.rows(connection, {**values, "below": below, "most": BATCH}):
        for entry in map(parse_entry, rows):
            below = entry.seq or 0
            yield entry
