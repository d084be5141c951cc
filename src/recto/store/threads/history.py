"""History (P13): the newest day of a thread before a date. Reads that day and its markers, not the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from typing import cast

from sqlalchemy import Connection, bindparam, select, tuple_

from recto.config.access_settings import BodyLimits
from recto.conversation.history import DAY, LATEST, HistoryMessage, day_of, is_in_history, midnight, statuses_of
from recto.conversation.log import Entry, VisibleNumbers
from recto.store.log.entry_rows import ENTRY_COLUMNS, MAX_SEQ, parse_entry, read_visible
from recto.store.runs.run_rows import check_owner
from recto.store.schema import LOG, THREADS, to_micros
from recto.store.statement import Statement, param
from recto.store.threads.queued_messages import InputsNeeded, ParsedRuns, QueuedMessage, list_queued

# Size of the first query, which needs only one message, and of later queries, which grow if many messages are hidden.
FIRST_BATCH, MAX_BATCH = 16, 1024

_entries = select(*ENTRY_COLUMNS).where(LOG.c.thread == bindparam("this"))
# Condition on indexed columns only. With more conditions, a planner may read the whole log and sort it.
_position = tuple_(param("until", LOG.c.time), param("below", LOG.c.seq))
BEFORE = Statement(
    _entries.where(tuple_(LOG.c.time, LOG.c.seq) < _position)
    .order_by(LOG.c.time.desc(), LOG.c.seq.desc())
    .limit(bindparam("most"))
)
BETWEEN = Statement(_entries.where(LOG.c.time >= bindparam("first"), LOG.c.time < bindparam("end")).order_by(LOG.c.seq))
LATEST_THREAD = Statement(
    select(THREADS.c.id)
    .where(THREADS.c.owner == bindparam("owner_is"))
    .order_by(THREADS.c.updated.desc(), THREADS.c.id.desc())
    .limit(1)
)


@dataclass(frozen=True, kw_only=True)
class HistoryQuery:
    """The requested day: the newest day with messages before a date, in a time zone.

    `thread` defaults to the latest thread. `queued_bytes` limits the queued requests that are parsed.
    """

    thread: str | None = None
    before: date | None = None
    zone: tzinfo = UTC
    queued_bytes: int = BodyLimits.queued_bytes


@dataclass(frozen=True, kw_only=True)
class HistoryDay:
    """The messages of a day in the order of the log, and whether there are older days.

    `queued` are the queued messages of the day, `statuses` the notes on incomplete replies.
    """

    thread: str | None = None
    day: date | None = None
    has_more: bool = False
    messages: tuple[HistoryMessage, ...] = ()
    queued: tuple[QueuedMessage, ...] = ()
    statuses: Mapping[str, str] = field(default_factory=dict[str, str])


def read_day(
    connection: Connection, owner: str, query: HistoryQuery, requests: ParsedRuns
) -> HistoryDay | InputsNeeded:
    """Return the newest day of a thread with messages to show (P13). Raise NotFound for another user's thread."""
    thread = query.thread
    if thread is not None:
        check_owner(connection, owner, thread)
    elif rows := LATEST_THREAD.rows(connection, {"owner_is": owner}):
        thread = cast("str", rows[0][0])
    else:
        return HistoryDay()
    queued = list_queued(connection, thread, query.queued_bytes, requests)
    return queued if isinstance(queued, InputsNeeded) else _read_day(connection, thread, query, queued)


def _read_day(connection: Connection, thread: str, query: HistoryQuery, queued: Sequence[QueuedMessage]) -> HistoryDay:
    visible = read_visible(connection, thread)
    until = midnight(query.before, query.zone) if query.before else LATEST
    queued_times = [(item.message.time, item) for item in queued if item.message.time]
    newest = next(_iterate_before(connection, thread, visible, until), None)
    times = [*(time for time, _ in queued_times if time < until), *([newest.time] if newest and newest.time else [])]
    if not times:
        return HistoryDay(thread=thread)
    day = day_of(max(times), query.zone)
    first, end = midnight(day, query.zone), midnight(day + DAY, query.zone)
    rows = BETWEEN.rows(connection, {"this": thread, "first": to_micros(first), "end": to_micros(end)})
    entries = [entry for entry in map(parse_entry, rows) if (entry.seq or 0) in visible]
    has_older = any(time < first for time in times) or next(_iterate_before(connection, thread, visible, first), None)
    return HistoryDay(
        thread=thread,
        day=day,
        has_more=bool(has_older),
        messages=tuple(entry for entry in entries if is_in_history(entry)),
        queued=tuple(item for time, item in queued_times if first <= time < end),
        # A reply and its status are written together, so they have the same day.
        statuses=statuses_of(entries),
    )


def _iterate_before(connection: Connection, thread: str, visible: VisibleNumbers, time: datetime) -> Iterator[Entry]:
    """Yield the visible messages before a time, newest first."""
    until, below, most = to_micros(time) - 1, MAX_SEQ, FIRST_BATCH
    while rows := BEFORE.rows(connection, {"this": thread, "until": until, "below": below, "most": most}):
        entries = map(parse_entry, rows)
        yield from (entry for entry in entries if is_in_history(entry) and (entry.seq or 0) in visible)
        until, below = cast("int", rows[-1][4]), cast("int", rows[-1][3])
        most = min(most * 2, MAX_BATCH)
