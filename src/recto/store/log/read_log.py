"""SQL that reads the log and the events of runs. It changes no rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlalchemy import Connection, Integer, LargeBinary, and_, bindparam, func, select

from recto.conversation.json import dump
from recto.conversation.log import Entry
from recto.page.text.tokens import note_tokens
from recto.store.log.entries import decode_entry
from recto.store.ports import StoredEvent, StoredRun
from recto.store.schema import EVENTS, LOG, RUNS, from_micros, to_micros
from recto.store.statement import Statement, batches

ENTRY_COLUMNS = (LOG.c.kind, LOG.c.body, LOG.c.id, LOG.c.seq, LOG.c.time, LOG.c.tokens, LOG.c.counter)
_behind = (
    select(*ENTRY_COLUMNS).where(LOG.c.thread == bindparam("this"), LOG.c.seq > bindparam("after")).order_by(LOG.c.seq)
)
LOG_AFTER = Statement(_behind)
LOG_AFTER_SOME = Statement(_behind.limit(bindparam("most")))
LOG_UP_TO = Statement(_behind.where(LOG.c.seq <= bindparam("last")))
_replies = select(LOG.c.seq).where(
    LOG.c.thread == bindparam("this"), LOG.c.seq <= bindparam("last"), LOG.c.kind == "assistant"
)
_bytes = bindparam("bytes", type_=LargeBinary())
REPLY_WITH = Statement(
    _replies.where(func.position(_bytes.op("IN")(LOG.c.body)) > 0).limit(1),
    on_sqlite=_replies.where(func.instr(LOG.c.body, _bytes) > 0).limit(1),
)
_is_after = and_(EVENTS.c.run == bindparam("this"), EVENTS.c.number > bindparam("after"))


def _events_after() -> Statement:
    """Return the statement for events within a byte limit. Bodies are joined last, so skipped ones are never read."""
    sizes = select(EVENTS.c.number, func.length(EVENTS.c.body).label("size")).where(_is_after)
    some = sizes.order_by(EVENTS.c.number).limit(bindparam("most")).subquery()
    before = (func.sum(some.c.size).over(order_by=some.c.number) - some.c.size).label("before")
    sums = select(some.c.number, before).subquery()
    last = select(func.max(sums.c.number)).where(sums.c.before < bindparam("size", type_=Integer)).scalar_subquery()
    found = select(EVENTS.c.number, EVENTS.c.body).where(_is_after, EVENTS.c.number <= last)
    return Statement(found.order_by(EVENTS.c.number))


EVENTS_AFTER = _events_after()
HAS_EVENTS = Statement(select(EVENTS.c.number).where(EVENTS.c.run == bindparam("this")).limit(1))


def log_after(connection: Connection, thread: str, seq: int) -> tuple[Entry, ...]:
    """Return the entries of a log after a number, in order."""
    return tuple(map(entry_of, LOG_AFTER.rows(connection, {"this": thread, "after": seq})))


def log_up_to(connection: Connection, thread: str, seq: int) -> tuple[Entry, ...]:
    """Return the entries of a log up to a number, in order."""
    return tuple(map(entry_of, LOG_UP_TO.rows(connection, {"this": thread, "after": 0, "last": seq})))


def taken_ids(connection: Connection, thread: str, ids: Sequence[str]) -> frozenset[str]:
    """Return those of these ids that entries of a log have."""
    found: set[str] = set()
    for some in batches(ids):
        found.update(connection.execute(select(LOG.c.id).where(LOG.c.thread == thread, LOG.c.id.in_(some))).scalars())
    return frozenset(found)


def has_had_call(connection: Connection, thread: str, upto: int, call: str) -> bool:
    """Return True if a reply up to a number contains a call of this id. Searches the stored bytes, decodes nothing."""
    spelled = b'"id":' + dump(call)
    return bool(REPLY_WITH.rows(connection, {"this": thread, "last": upto, "bytes": spelled}))


def entry_of(row: Sequence[object]) -> Entry:
    """Return an entry from its row (`ENTRY_COLUMNS`), with its stored token count."""
    kind, body, id, seq, at, tokens, counter = cast("tuple[str, bytes, str, int, int, int | None, str]", tuple(row))
    entry = decode_entry(kind, body, id=id, seq=seq, time=from_micros(at))
    if tokens is not None:
        note_tokens(entry, counter, tokens)
    return entry


def events_after(connection: Connection, run: str, number: int, limit: int, size: int) -> tuple[StoredEvent, ...]:
    """Return events of a run after a number, in order, up to `limit` events and about `size` bytes."""
    found = EVENTS_AFTER.rows(connection, {"this": run, "after": number, "most": limit, "size": size})
    rows = cast("Sequence[tuple[int, bytes]]", found)
    return tuple([StoredEvent(number=found, body=body) for found, body in rows])


def has_events(connection: Connection, run: str) -> bool:
    """Return True if events of a run are stored. Cleanup deletes those of old runs."""
    return bool(HAS_EVENTS.rows(connection, {"this": run}))


def log_of_run(connection: Connection, run: StoredRun) -> tuple[Entry, ...]:
    """Return the log of a run's thread up to the last entry that the run wrote.

    If the run wrote none, return the entries up to the run's end.
    """
    newest = select(func.max(LOG.c.seq)).where(LOG.c.thread == run.thread)
    last = connection.execute(newest.where(LOG.c.run == run.id)).scalar_one()
    if last is None and run.ended:
        last = connection.execute(newest.where(LOG.c.time <= to_micros(run.ended))).scalar_one()
    rows = LOG_UP_TO.rows(connection, {"this": run.thread, "after": 0, "last": last or 0})
    return tuple(map(entry_of, rows))


def log_up_to_entry(connection: Connection, thread: str, id: str) -> tuple[Entry, ...]:
    """Return the entries of a log up to the one of this id, in order; none if the id is unknown."""
    found = select(LOG.c.seq).where(LOG.c.thread == thread, LOG.c.id == id)
    return log_up_to(connection, thread, connection.execute(found).scalar() or 0)


def count_waiting(connection: Connection) -> int:
    """Return the number of runs that wait for a claim."""
    return connection.execute(select(func.count()).where(RUNS.c.status == "queued")).scalar_one()


def knows(connection: Connection, run: str) -> bool:
    """Return True if a run exists."""
    return connection.execute(select(RUNS.c.id).where(RUNS.c.id == run)).first() is not None
