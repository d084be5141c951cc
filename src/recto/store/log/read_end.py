"""The end of a long log: the entries that its pages can show. Older messages are summed up, not read.

A summary in force replaces the messages before it; a window shows the newest messages before the turn, which is read
whole. If the numbers and kinds of the entries do not determine the sums, the whole log must be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, bindparam, func, select, text, update

from recto.conversation.log import ROLLBACK_MARKERS, Compacted, Entry, SkillChanged, StateChanged, VisibleNumbers, view
from recto.conversation.messages import AssistantMessage, File, ToolMessage, UnreadMessages, UserMessage
from recto.store.log.entries import MESSAGE_KINDS
from recto.store.log.read_log import ENTRY_COLUMNS, LOG_AFTER, entry_of
from recto.store.log.visible import seen_in, state_in
from recto.store.schema import FILE_REFS, IS_LASTING, LOG, from_micros
from recto.store.statement import Statement, Value, param

# A log with more rollbacks is read whole: each visible stretch needs its own sum.
MAX_STRETCHES = 32
BATCH = 128
# Greater than the number of any entry.
MAX_SEQ = 2**62
# Stored kinds: messages that count in a window, and messages that it shows whatever their age.
COUNTED, ALWAYS_SHOWN = ("user", "assistant", "tool"), ("system", "developer")

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
LASTING_ENTRIES = Statement(
    select(*ENTRY_COLUMNS).where(_is_thread, text(IS_LASTING), _is_up_to).order_by(LOG.c.seq.desc())
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
    func.count().filter(text(_kind_condition(COUNTED))),
    func.count().filter(text(_kind_condition(ALWAYS_SHOWN))),
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


@dataclass(frozen=True, kw_only=True)
class EndQuery:
    """The log, the messages of history in a page (None: all) and the counter. An end that leaves fewer than `least`
    messages unread is not worth it.
    """

    thread: str
    counter: str
    history: int | None = None
    least: int = 2


@dataclass(frozen=True, kw_only=True)
class LogEnd:
    """The entries that pages can show, after placeholders for the rest. `is_windowed` if some are left out by the
    window.
    """

    entries: tuple[Entry, ...]
    is_windowed: bool


@dataclass(frozen=True, kw_only=True)
class MissingCounts:
    """Some entries up to this number lack counts of this counter. Once they are counted, the end can be read."""

    upto: int


def read_end(connection: Connection, query: EndQuery) -> LogEnd | MissingCounts | None:
    """Return the end of a log: None if the whole log must be read, Uncounted if counts are missing."""
    visible = seen_in(connection, query.thread)
    # The file of an id may depend on much older messages.
    if len(visible.ranges) > MAX_STRETCHES or HAS_FILES.rows(connection, {"this": query.thread}):
        return None
    log = _LogReader(connection=connection, query=query, visible=visible)
    turn = next((seq for seq, kind in log.iterate_before(MAX_SEQ) if kind == "user"), None)
    if turn is None:
        return None
    summary, upto = log.find_summary()
    summed = min(upto, turn - 1)
    old, history = log.sum_up(0, summed), log.sum_up(summed, log.window_start(turn, summed) - 1)
    # A window always shows these messages, or has fewer than it may show.
    if history.always_shown or not history.counted:
        history = _MessageSums()
    if old.count + history.count < max(query.least, 1) or 1 in (old.count, history.count):
        return None
    last = max(old.upto, history.upto)
    if not (old.is_counted and history.is_counted):
        return MissingCounts(upto=last)
    entries = (
        *log.stand_for(old),
        *([summary] if summary and (summary.seq or 0) <= last else ()),
        *log.stand_for(history),
        *log.find_skill(last),
        *log.state(last),
        *map(entry_of, LOG_AFTER.rows(connection, {"this": query.thread, "after": last})),
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
    counted: int = 0
    always_shown: int = 0
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
            entry = entry_of(row)
            if isinstance(entry, Compacted) and (entry.seq or 0) in self.visible:
                positions = cast("Sequence[tuple[int, str]]", self._rows(FIND_POSITION, id_is=entry.upto))
                if positions and positions[0][1] in MESSAGE_KINDS and positions[0][0] in self.visible:
                    return entry, positions[0][0]
        return None, 0

    def find_skill(self, upto: int) -> Iterator[SkillChanged]:
        """Yield the newest visible skill change up to a number."""
        entries = (entry_of(row) for row in self._rows(LASTING_ENTRIES, upto=upto))
        yield from [one for one in entries if isinstance(one, SkillChanged) and (one.seq or 0) in self.visible][:1]

    def state(self, upto: int) -> Iterator[StateChanged]:
        """Yield the newest visible state change up to a number."""
        found = state_in(self.connection, self.query.thread, self.visible, upto)
        yield from () if found is None else (found,)

    def window_start(self, turn: int, after: int) -> int:
        """Return the number of the user message at which the window of history begins, after `after`."""
        if self.query.history is None:
            return after + 1
        left = self.query.history
        for seq, kind in self.iterate_before(turn):
            if seq <= after:
                break
            left -= kind in COUNTED
            if left <= 0 and kind == "user":
                return seq
        return after + 1

    def sum_up(self, after: int, upto: int) -> _MessageSums:
        """Sum up the visible messages between two numbers."""
        total = _MessageSums(upto=upto)
        for stretch in self.visible.ranges:
            first, last = max(stretch.first, after + 1), min(stretch.last or upto, upto)
            if first <= last:
                total = _added(total, self._rows(SUM_UP, first=first, upto=last, counter_is=self.query.counter)[0])
        return total

    def stand_for(self, some: _MessageSums) -> Iterator[UnreadMessages]:
        """Yield the placeholder of some unread messages."""
        if some.count:
            first, last = (cast("str", self._rows(FIND_ID, number=number)[0][0]) for number in (some.first, some.last))
            newest = from_micros(some.newest)
            yield UnreadMessages(id=last, seq=some.upto, time=newest, first=first, count=some.count, tokens=some.tokens)

    def _rows(self, statement: Statement, **values: Value) -> Sequence[Sequence[object]]:
        return statement.rows(self.connection, {"this": self.query.thread, **values})


def _added(total: _MessageSums, row: Sequence[object]) -> _MessageSums:
    count, known, tokens, first, last, newest, counted, always_shown = cast("tuple[int, ...]", tuple(row))
    if not count:
        return total
    return _MessageSums(
        upto=total.upto,
        count=total.count + count,
        tokens=total.tokens + tokens,
        first=total.first or first,
        last=last,
        newest=max(total.newest, newest),
        counted=total.counted + counted,
        always_shown=total.always_shown + always_shown,
        is_counted=total.is_counted and known == count,
    )


def _is_whole(entries: Sequence[Entry], seen: VisibleNumbers, last: int, is_windowed: bool) -> bool:
    """Return True if no entry read needs an unread one: a rollback its message, a result its call, a file its place."""
    read = [entry for entry in entries if (entry.seq or 0) > last]
    shown = [entry for entry in read if type(entry) not in ROLLBACK_MARKERS and (entry.seq or 0) in seen]
    if list(view(read).entries) != shown:
        return False
    calls: set[str] = set()
    for entry in shown:
        if isinstance(entry, AssistantMessage):
            calls.update([call.id for call in entry.tool_calls])
        if is_windowed and isinstance(entry, ToolMessage) and entry.tool_call_id not in calls:
            return False
        if isinstance(entry, UserMessage) and not entry.response_id and any(isinstance(p, File) for p in entry.parts):
            return False
    return True


def uncounted(connection: Connection, thread: str, counter: str, *, after: int, upto: int) -> tuple[Entry, ...]:
    """Return a batch of messages between two numbers that this counter has not counted, oldest first."""
    values = {"this": thread, "after": after, "upto": upto, "counter_is": counter, "most": BATCH}
    return tuple(map(entry_of, UNCOUNTED.rows(connection, values)))


def set_tokens(connection: Connection, thread: str, counter: str, tokens: Mapping[str, int]) -> None:
    """Store token counts by entry id. Counts are per thread: another thread may have the same ids."""
    rows = [{"this": thread, "id_is": id, "new_tokens": count, "new_counter": counter} for id, count in tokens.items()]
    SET_TOKENS.run_many(connection, rows)
