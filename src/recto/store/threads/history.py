"""SQL of history (P13): the newest day of a thread before a date. Reads that day and its markers, not the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from typing import cast

from sqlalchemy import Connection, bindparam, select, tuple_

from recto.config.access_settings import BodyLimits
from recto.conversation.history import DAY, LATEST, HistoryMessage, day_of, is_in_history, midnight, statuses_of
from recto.conversation.log import Entry, VisibleNumbers
from recto.store.log.entry_rows import ENTRY_COLUMNS, parse_entry, read_visible
from recto.store.runs.queued import InputsNeeded, QueuedMessage, Sent, queued_in
from recto.store.schema import LOG, THREADS, to_micros
from recto.store.statement import Statement, param
from recto.store.threads.thread_rows import check_owner

# The first query is for one message. If many are hidden, later queries are larger.
FIRST_LOOK, LARGEST_LOOK = 16, 1024
# Greater than the number of any entry.
ABOVE_ALL = 2**62

_entries = select(*ENTRY_COLUMNS).where(LOG.c.thread == bindparam("this"))
# Only indexed columns: with more conditions, a planner may read the whole log and sort it.
_place = tuple_(param("until", LOG.c.time), param("below", LOG.c.seq))
BEFORE = Statement(
    _entries.where(tuple_(LOG.c.time, LOG.c.seq) < _place)
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
    """The requested day: of this thread or of the latest, before this date, in this time zone.

    `queued_bytes` limits the queued requests that are parsed.
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


def history_day(connection: Connection, owner: str, query: HistoryQuery, sent: Sent) -> HistoryDay | InputsNeeded:
    """Return the newest day of a thread with messages to show (P13). Raise NotFound for another user's thread."""
    if query.thread is not None:
        check_owner(connection, owner, query.thread)
    thread = query.thread or _latest(connection, owner)
    if thread is None:
        return HistoryDay()
    queued = queued_in(connection, thread, query.queued_bytes, sent)
    return queued if isinstance(queued, InputsNeeded) else _day(connection, thread, query, queued)


def _day(connection: Connection, thread: str, query: HistoryQuery, queued: Sequence[QueuedMessage]) -> HistoryDay:
    seen = read_visible(connection, thread)
    until = midnight(query.before, query.zone) if query.before else LATEST
    waiting = [(one.message.time, one) for one in queued if one.message.time]
    newest = next(_shown_before(connection, thread, seen, until), None)
    times = [*(time for time, _ in waiting if time < until), *([newest.time] if newest and newest.time else [])]
    if not times:
        return HistoryDay(thread=thread)
    day = day_of(max(times), query.zone)
    first, end = midnight(day, query.zone), midnight(day + DAY, query.zone)
    rows = BETWEEN.rows(connection, {"this": thread, "first": to_micros(first), "end": to_micros(end)})
    entries = [entry for entry in map(parse_entry, rows) if (entry.seq or 0) in seen]
    is_older = any(time < first for time in times) or next(_shown_before(connection, thread, seen, first), None)
    return HistoryDay(
        thread=thread,
        day=day,
        has_more=bool(is_older),
        messages=tuple(entry for entry in entries if is_in_history(entry)),
        queued=tuple(one for time, one in waiting if first <= time < end),
        # A reply and its status are written together, so they have the same day.
        statuses=statuses_of(entries),
    )


def _latest(connection: Connection, owner: str) -> str | None:
    rows = LATEST_THREAD.rows(connection, {"owner_is": owner})
    return cast("str", rows[0][0]) if rows else None


def _shown_before(connection: Connection, thread: str, seen: VisibleNumbers, time: datetime) -> Iterator[Entry]:
    """Yield the shown entries before a time, newest first."""
    until, below, most = to_micros(time) - 1, ABOVE_ALL, FIRST_LOOK
    while rows := BEFORE.rows(connection, {"this": thread, "until": until, "below": below, "most": most}):
        yield from (entry for entry in map(parse_entry, rows) if _is_shown(entry, seen))
        until, below = cast("int", rows[-1][4]), cast("int", rows[-1][3])
        most = min(most * 2, LARGEST_LOOK)


def _is_shown(entry: Entry, seen: VisibleNumbers) -> bool:
    return is_in_history(entry) and (entry.seq or 0) in seen
