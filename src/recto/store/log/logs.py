"""Logs of threads, and the end of a long log: the entries that its pages can show, with older messages as sums.

A summary replaces the messages before it. A window shows the newest messages before the current turn; the turn is read
completely. If the numbers and kinds of the entries do not determine the sums, the whole log must be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, LargeBinary, bindparam, func, select, text, update

from recto.conversation.json import dump
from recto.conversation.log import ROLLBACK_MARKERS, Compacted, Entry, StateChanged, VisibleNumbers, view
from recto.conversation.messages import AssistantMessage, File, ToolMessage, UnreadMessages, UserMessage
from recto.store.database.database import Repository, read_transaction, write_transaction
from recto.store.log.entry_codec import MESSAGE_KINDS
from recto.store.log.entry_rows import (
    ENTRY_COLUMNS,
    LASTING_ENTRIES,
    MAX_SEQ,
    find_skill,
    find_state,
    parse_entry,
    read_entries,
    read_log_of_run,
    read_turn,
    read_visible,
)
from recto.store.ports import StoredRun
from recto.store.schema import FILE_REFS, LOG, from_micros
from recto.store.statement import Statement, Value, batches, param

# Number of visible ranges above which a log is read whole, because each range needs its own sum.
MAX_RANGES = 32
BATCH = 128
# Stored kinds of messages that count towards a window, and of messages that a window shows whatever their age.
WINDOW_KINDS, PINNED_KINDS = ("user", "assistant", "tool"), ("system", "developer")

_is_thread = LOG.c.thread == bindparam("this")
_is_up_to = LOG.c.seq <= bindparam("upto")


def _kind_condition(kinds: Sequence[str]) -> str:
    return f"kind IN ({', '.join(map(repr, kinds))})"


KINDS_BEFORE = Statement(
    select(LOG.c.seq, LOG.c.kind)
    .where(_is_thread, LOG.c.seq < bindparam("below"))
    .order_by(LOG.c.seq.desc())
    .limit(bindparam("most"))
)
FIND_POSITION = Statement(select(LOG.c.seq, LOG.c.kind).where(_is_thread, LOG.c.id == bindparam("id_is")))
FIND_ID = Statement(select(LOG.c.id).where(_is_thread, LOG.c.seq == bindparam("number")))
HAS_FILES = Statement(select(FILE_REFS.c.id).where(FILE_REFS.c.thread == bindparam("this")).limit(1))
_is_message = text(_kind_condition(MESSAGE_KINDS))
_sums = [
    func.count(),
    func.count().filter(LOG.c.counter == bindparam("counter_is")),
    func.coalesce(func.sum(LOG.c.tokens), 0),
    func.min(LOG.c.seq),
    func.max(LOG.c.seq),
    func.max(LOG.c.time),
    func.count().filter(text(_kind_condition(WINDOW_KINDS))),
    func.count().filter(text(_kind_condition(PINNED_KINDS))),
]
SUM_UP = Statement(select(*_sums).where(_is_thread, LOG.c.seq >= bindparam("first"), _is_up_to, _is_message))
UNCOUNTED = Statement(
    select(*ENTRY_COLUMNS)
    .where(
        _is_thread,
        LOG.c.seq > bindparam("after"),
        _is_up_to,
        _is_message,
        func.coalesce(LOG.c.counter, "") != bindparam("counter_is"),
    )
    .order_by(LOG.c.seq)
    .limit(bindparam("most"))
)
SET_TOKENS = Statement(
    update(LOG)
    .where(_is_thread, LOG.c.id == bindparam("id_is"))
    .values(tokens=param("new_tokens", LOG.c.tokens), counter=param("new_counter", LOG.c.counter))
)
_replies = select(LOG.c.seq).where(_is_thread, _is_up_to, LOG.c.kind == "assistant").limit(1)
_needle = bindparam("needle", type_=LargeBinary())
REPLY_WITH = Statement(
    _replies.where(func.position(_needle.op("IN")(LOG.c.body)) > 0),
    on_sqlite=_replies.where(func.instr(LOG.c.body, _needle) > 0),
)


@dataclass(frozen=True, kw_only=True)
class EndQuery:
    """A request for the end of a log. `history` limits the earlier messages in a page; None sets no limit.

    If fewer than `least` messages would stay unread, the whole log is read instead.
    """

    thread: str
    counter: str
    history: int | None = None
    least: int = 2


@dataclass(frozen=True, kw_only=True)
class LogEnd:
    """The end of a log: placeholders for unread messages, then the entries that pages can show.

    `is_windowed` is True if the limit of history excludes some messages.
    """

    entries: tuple[Entry, ...]
    is_windowed: bool


@dataclass(frozen=True, kw_only=True)
class MissingCounts:
    """Result if the end of a log cannot be read, because entries up to `upto` lack token counts of the counter."""

    upto: int


class Logs(Repository):
    """The append-only logs of threads."""

    @read_transaction
    def read_after(self, connection: Connection, thread: str, seq: int = 0) -> tuple[Entry, ...]:
        """Return the entries of a log after a number, in order."""
        return read_entries(connection, thread, after=seq)

    @read_transaction
    def read_up_to(self, connection: Connection, thread: str, seq: int) -> tuple[Entry, ...]:
        """Return the entries of a log up to a number, in order."""
        return read_entries(connection, thread, upto=seq)

    @read_transaction
    def read_up_to_entry(self, connection: Connection, thread: str, id: str) -> tuple[Entry, ...]:
        """Return the entries of a log up to the one with this id, in order; none if there is no such entry."""
        position = FIND_POSITION.rows(connection, {"this": thread, "id_is": id})
        return read_entries(connection, thread, upto=cast("int", position[0][0])) if position else ()

    @read_transaction
    def read_of_run(self, connection: Connection, run: StoredRun) -> tuple[Entry, ...]:
        """Return the log of a run's thread as the run left it."""
        return read_log_of_run(connection, run)

    @read_transaction
    def read_end(self, connection: Connection, query: EndQuery) -> LogEnd | MissingCounts | None:
        """Return the end of a log, MissingCounts if it lacks token counts, or None if the whole log must be read."""
        return read_end(connection, query)

    @read_transaction
    def list_uncounted(
        self, connection: Connection, thread: str, counter: str, *, after: int, upto: int
    ) -> tuple[Entry, ...]:
        """Return a batch of messages between two numbers, oldest first, that have no count by this counter."""
        values = {"this": thread, "after": after, "upto": upto, "counter_is": counter, "most": BATCH}
        return tuple(map(parse_entry, UNCOUNTED.rows(connection, values)))

    @write_transaction
    def set_tokens(self, connection: Connection, thread: str, counter: str, tokens: Mapping[str, int]) -> None:
        """Store token counts by entry id.

        The thread is required, because other threads may have entries with the same ids.
        """
        rows = [
            {"this": thread, "id_is": id, "new_tokens": count, "new_counter": counter} for id, count in tokens.items()
        ]
        SET_TOKENS.run_many(connection, rows)

    @read_transaction
    def find_ids(self, connection: Connection, thread: str, ids: Sequence[str]) -> frozenset[str]:
        """Return the given ids that belong to entries of a log."""
        queries = [select(LOG.c.id).where(LOG.c.thread == thread, LOG.c.id.in_(batch)) for batch in batches(ids)]
        return frozenset(id for query in queries for id in connection.execute(query).scalars())

    @read_transaction
    def has_call(self, connection: Connection, thread: str, upto: int, call: str) -> bool:
        """Return True if a reply up to a number contains a call with this id.

        Search the stored bytes without decoding.
        """
        needle = b'"id":' + dump(call)
        return bool(REPLY_WITH.rows(connection, {"this": thread, "upto": upto, "needle": needle}))

    @read_transaction
    def read_turn(self, connection: Connection, thread: str) -> tuple[Entry, ...]:
        """Return the visible entries of the current turn: its user message and all that follows."""
        return read_turn(connection, thread)

    @read_transaction
    def read_state(self, connection: Connection, thread: str) -> StateChanged | None:
        """Return the newest visible state change: the state that the thread shares with its clients."""
        return find_state(connection, thread)

    @read_transaction
    def can_undo(self, connection: Connection, thread: str) -> bool:
        """Return True if the thread has a rollback that can be undone."""
        return read_visible(connection, thread).can_undo


def read_end(connection: Connection, query: EndQuery) -> LogEnd | MissingCounts | None:
    """Return the end of a log.

    Return MissingCounts if token counts are missing, and None if the whole log must be read.
    """
    visible = read_visible(connection, query.thread)
    # A log with files must be read whole, because the file of an id may depend on much older messages.
    if len(visible.ranges) > MAX_RANGES or HAS_FILES.rows(connection, {"this": query.thread}):
        return None
    log = _LogReader(connection=connection, query=query, visible=visible)
    turn = next((seq for seq, kind in log.iterate_before(MAX_SEQ) if kind == "user"), None)
    if turn is None:
        return None
    summary, upto = log.find_summary()
    summed = min(upto, turn - 1)
    old, history = log.sum_up(0, summed), log.sum_up(summed, log.find_window_start(turn, summed) - 1)
    # Do not sum up this part if it contains pinned messages, which a window always shows, or no messages that count
    # towards a window.
    if history.pinned or not history.in_window:
        history = _MessageSums()
    if old.count + history.count < max(query.least, 1) or 1 in (old.count, history.count):
        return None
    last = max(old.upto, history.upto)
    if not (old.is_counted and history.is_counted):
        return MissingCounts(upto=last)
    skill = find_skill(connection, query.thread, visible, last)
    state = find_state(connection, query.thread, visible, last)
    entries = (
        *log.make_placeholder(old),
        *([summary] if summary and (summary.seq or 0) <= last else ()),
        *log.make_placeholder(history),
        *([skill] if skill else []),
        *([state] if state else []),
        *read_entries(connection, query.thread, after=last),
    )
    is_windowed = history.count > 0
    return LogEnd(entries=entries, is_windowed=is_windowed) if _is_whole(entries, visible, last, is_windowed) else None


@dataclass(frozen=True, kw_only=True)
class _MessageSums:
    """Sums of the visible messages up to a number."""

    upto: int = 0
    count: int = 0
    tokens: int = 0
    first: int = 0
    last: int = 0
    newest: int = 0
    in_window: int = 0
    pinned: int = 0
    is_counted: bool = True


@dataclass(frozen=True, kw_only=True)
class _LogReader:
    connection: Connection
    query: EndQuery
    visible: VisibleNumbers

    def iterate_before(self, below: int) -> Iterator[tuple[int, str]]:
        """Yield numbers and kinds of visible entries below a number, newest first."""
        while rows := self._rows(KINDS_BEFORE, below=below, most=BATCH):
            entries = cast("Sequence[tuple[int, str]]", rows)
            yield from ((seq, kind) for seq, kind in entries if seq in self.visible)
            below = entries[-1][0]

    def find_summary(self) -> tuple[Compacted | None, int]:
        """Return the summary in force and the number of the last message it replaces."""
        for row in self._rows(LASTING_ENTRIES, upto=MAX_SEQ):
            entry = parse_entry(row)
            if isinstance(entry, Compacted) and (entry.seq or 0) in self.visible:
                positions = cast("Sequence[tuple[int, str]]", self._rows(FIND_POSITION, id_is=entry.upto))
                if positions and positions[0][1] in MESSAGE_KINDS and positions[0][0] in self.visible:
                    return entry, positions[0][0]
        return None, 0

    def find_window_start(self, turn: int, after: int) -> int:
        """Return the number of the first entry in the window of history: a user message, or the entry after `after`."""
        if self.query.history is None:
            return after + 1
        rest = self.query.history
        for seq, kind in self.iterate_before(turn):
            if seq <= after:
                break
            rest -= kind in WINDOW_KINDS
            if rest <= 0 and kind == "user":
                return seq
        return after + 1

    def sum_up(self, after: int, upto: int) -> _MessageSums:
        """Sum up the visible messages between two numbers."""
        total = _MessageSums(upto=upto)
        for span in self.visible.ranges:
            first, last = max(span.first, after + 1), min(span.last or upto, upto)
            if first > last:
                continue
            rows = self._rows(SUM_UP, first=first, upto=last, counter_is=self.query.counter)
            count, with_tokens, tokens, first, last, newest, in_window, pinned = cast("tuple[int, ...]", tuple(rows[0]))
            if count:
                total = _MessageSums(
                    upto=upto,
                    count=total.count + count,
                    tokens=total.tokens + tokens,
                    first=total.first or first,
                    last=last,
                    newest=max(total.newest, newest),
                    in_window=total.in_window + in_window,
                    pinned=total.pinned + pinned,
                    is_counted=total.is_counted and with_tokens == count,
                )
        return total

    def make_placeholder(self, sums: _MessageSums) -> Iterator[UnreadMessages]:
        """Yield a placeholder for unread messages, if there are any."""
        if sums.count:
            first, last = (cast("str", self._rows(FIND_ID, number=number)[0][0]) for number in (sums.first, sums.last))
            newest = from_micros(sums.newest)
            yield UnreadMessages(id=last, seq=sums.upto, time=newest, first=first, count=sums.count, tokens=sums.tokens)

    def _rows(self, statement: Statement, **values: Value) -> Sequence[Sequence[object]]:
        return statement.rows(self.connection, {"this": self.query.thread, **values})


def _is_whole(entries: Sequence[Entry], visible: VisibleNumbers, last: int, is_windowed: bool) -> bool:
    """Return True if the entries read do not depend on unread ones.

    A rollback needs its message, a result its call, and a file its place.
    """
    tail = [entry for entry in entries if (entry.seq or 0) > last]
    expected = [entry for entry in tail if type(entry) not in ROLLBACK_MARKERS and (entry.seq or 0) in visible]
    if list(view(tail).entries) != expected:
        return False
    calls: set[str] = set()
    for entry in expected:
        if isinstance(entry, AssistantMessage):
            calls.update([call.id for call in entry.tool_calls])
        if is_windowed and isinstance(entry, ToolMessage) and entry.tool_call_id not in calls:
            return False
        if isinstance(entry, UserMessage) and not entry.response_id and any(isinstance(p, File) for p in entry.parts):
            return False
    return True
