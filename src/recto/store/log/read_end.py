"""The end of a long log: all that its pages can show. What they leave out stands before it, summed up and not read.

A summary in force stands for what is before it; a window shows the newest messages before the turn, which is whole.
Where numbers and kinds of entries do not tell what that comes to, there is no end to be had: the log is read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, bindparam, func, select, text, update

from recto.conversation.log import TURNS_BACK, Compacted, Entry, Seen, SkillChanged, StateChanged, view
from recto.conversation.messages import AssistantMessage, File, ToolMessage, UnreadMessages, UserMessage
from recto.store.log.entries import MESSAGE_KINDS
from recto.store.log.read_log import ENTRY_COLUMNS, LOG_AFTER, entry_of
from recto.store.log.visible import seen_in, state_in
from recto.store.schema import FILE_REFS, LOG, STANDS_OUT, moment
from recto.store.statement import Statement, Value, param

# A log that was turned back more often is read whole: each stretch in view is summed up by itself.
MOST_STRETCHES = 32
BATCH = 128
# No entry has a larger number.
ABOVE_ALL = 2**62
# By their stored names: what a window counts, and what it shows however old it is.
COUNTED, ALWAYS_SHOWN = ("user", "assistant", "tool"), ("system", "developer")

_mine = LOG.c.thread == bindparam("this")
_upto = LOG.c.seq <= bindparam("upto")


def _is_any_of(kinds: Sequence[str]) -> str:
    return f"kind IN ({', '.join(map(repr, kinds))})"


KINDS_BEFORE = Statement(
    select(LOG.c.seq, LOG.c.kind)
    .where(_mine, LOG.c.seq < bindparam("below"))
    .order_by(LOG.c.seq.desc())
    .limit(bindparam("most"))
)
STANDING_OUT = Statement(select(*ENTRY_COLUMNS).where(_mine, text(STANDS_OUT), _upto).order_by(LOG.c.seq.desc()))
PLACE_OF = Statement(select(LOG.c.seq, LOG.c.kind).where(_mine, LOG.c.id == bindparam("id_is")))
ID_OF = Statement(select(LOG.c.id).where(_mine, LOG.c.seq == bindparam("number")))
HAS_FILES = Statement(select(FILE_REFS.c.id).where(FILE_REFS.c.thread == bindparam("this")).limit(1))
_messages = text(_is_any_of(MESSAGE_KINDS))
_sums = [
    func.count(),
    func.count().filter(LOG.c.counter == bindparam("counter_is")),
    func.coalesce(func.sum(LOG.c.tokens), 0),
    func.min(LOG.c.seq),
    func.max(LOG.c.seq),
    func.max(LOG.c.time),
    func.count().filter(text(_is_any_of(COUNTED))),
    func.count().filter(text(_is_any_of(ALWAYS_SHOWN))),
]
SUM_UP = Statement(select(*_sums).where(_mine, LOG.c.seq >= bindparam("first"), _upto, _messages))
UNCOUNTED = Statement(
    select(*ENTRY_COLUMNS)
    .where(
        _mine,
        LOG.c.seq > bindparam("after"),
        _upto,
        _messages,
        func.coalesce(LOG.c.counter, "") != bindparam("counter_is"),
    )
    .order_by(LOG.c.seq)
    .limit(bindparam("most"))
)
COUNT = Statement(
    update(LOG)
    .where(_mine, LOG.c.id == bindparam("id_is"))
    .values(tokens=param("new_tokens", LOG.c.tokens), counter=param("new_counter", LOG.c.counter))
)


@dataclass(frozen=True, kw_only=True)
class EndQuery:
    """The end of which log, for pages with so many messages of history (None: all), with counts of this counter.

    What would leave fewer than `least` messages unread is not worth it.
    """

    thread: str
    counter: str
    history: int | None = None
    least: int = 2


@dataclass(frozen=True, kw_only=True)
class LogEnd:
    """What pages can show of a log, behind what stands for the rest. Some of that may be there for its window alone."""

    entries: tuple[Entry, ...]
    is_windowed: bool


@dataclass(frozen=True, kw_only=True)
class Uncounted:
    """Of entries up to this number not all were counted by this counter; once they are, the end can be read."""

    upto: int


def read_end(connection: Connection, query: EndQuery) -> LogEnd | Uncounted | None:
    """The end of a log; None where it has to be read whole."""
    seen = seen_in(connection, query.thread)
    # Which file an id stands for may depend on messages of long ago.
    if len(seen.stretches) > MOST_STRETCHES or HAS_FILES.rows(connection, {"this": query.thread}):
        return None
    log = _StoredLog(connection=connection, query=query, seen=seen)
    turn = next((seq for seq, kind in log.before(ABOVE_ALL) if kind == "user"), None)
    if turn is None:
        return None
    summary, upto = log.summary()
    summed = min(upto, turn - 1)
    beginning, history = log.sum_up(0, summed), log.sum_up(summed, log.window_start(turn, summed) - 1)
    # Nothing of a window is left out that is shown however old it is, nor what would not fill one.
    if history.always_shown or not history.counted:
        history = _Sum()
    if beginning.count + history.count < max(query.least, 1) or 1 in (beginning.count, history.count):
        return None
    last = max(beginning.upto, history.upto)
    if not (beginning.is_counted and history.is_counted):
        return Uncounted(upto=last)
    entries = (
        *log.stand_for(beginning),
        *([summary] if summary and (summary.seq or 0) <= last else ()),
        *log.stand_for(history),
        *log.skill(last),
        *log.state(last),
        *map(entry_of, LOG_AFTER.rows(connection, {"this": query.thread, "after": last})),
    )
    is_windowed = history.count > 0
    return LogEnd(entries=entries, is_windowed=is_windowed) if _is_whole(entries, seen, last, is_windowed) else None


@dataclass(frozen=True, kw_only=True)
class _Sum:
    """What messages in view up to a number come to."""

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
class _StoredLog:
    connection: Connection
    query: EndQuery
    seen: Seen

    def before(self, below: int) -> Iterator[tuple[int, str]]:
        """Numbers and kinds in view below a number, newest first."""
        while rows := self._rows(KINDS_BEFORE, below=below, most=BATCH):
            found = cast("Sequence[tuple[int, str]]", rows)
            yield from ((seq, kind) for seq, kind in found if seq in self.seen)
            below = found[-1][0]

    def summary(self) -> tuple[Compacted | None, int]:
        """The summary in force, and the number of the last message it stands for."""
        for row in self._rows(STANDING_OUT, upto=ABOVE_ALL):
            entry = entry_of(row)
            if isinstance(entry, Compacted) and (entry.seq or 0) in self.seen:
                found = cast("Sequence[tuple[int, str]]", self._rows(PLACE_OF, id_is=entry.upto))
                if found and found[0][1] in MESSAGE_KINDS and found[0][0] in self.seen:
                    return entry, found[0][0]
        return None, 0

    def skill(self, upto: int) -> Iterator[SkillChanged]:
        """The newest change of skill in view up to a number."""
        found = (entry_of(row) for row in self._rows(STANDING_OUT, upto=upto))
        yield from [one for one in found if isinstance(one, SkillChanged) and (one.seq or 0) in self.seen][:1]

    def state(self, upto: int) -> Iterator[StateChanged]:
        """The newest change of state in view up to a number."""
        found = state_in(self.connection, self.query.thread, self.seen, upto)
        yield from () if found is None else (found,)

    def window_start(self, turn: int, after: int) -> int:
        """The number of the user message from which on the newest messages of history stand, behind `after`."""
        if self.query.history is None:
            return after + 1
        left = self.query.history
        for seq, kind in self.before(turn):
            if seq <= after:
                break
            left -= kind in COUNTED
            if left <= 0 and kind == "user":
                return seq
        return after + 1

    def sum_up(self, after: int, upto: int) -> _Sum:
        """What the messages in view behind a number come to."""
        total = _Sum(upto=upto)
        for stretch in self.seen.stretches:
            first, last = max(stretch.first, after + 1), min(stretch.last or upto, upto)
            if first <= last:
                total = _added(total, self._rows(SUM_UP, first=first, upto=last, counter_is=self.query.counter)[0])
        return total

    def stand_for(self, some: _Sum) -> Iterator[UnreadMessages]:
        """What stands for some messages that are not read."""
        if some.count:
            first, last = (cast("str", self._rows(ID_OF, number=number)[0][0]) for number in (some.first, some.last))
            newest = moment(some.newest)
            yield UnreadMessages(id=last, seq=some.upto, time=newest, first=first, count=some.count, tokens=some.tokens)

    def _rows(self, statement: Statement, **values: Value) -> Sequence[Sequence[object]]:
        return statement.rows(self.connection, {"this": self.query.thread, **values})


def _added(total: _Sum, row: Sequence[object]) -> _Sum:
    count, known, tokens, first, last, newest, counted, always_shown = cast("tuple[int, ...]", tuple(row))
    if not count:
        return total
    return _Sum(
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


def _is_whole(entries: Sequence[Entry], seen: Seen, last: int, is_windowed: bool) -> bool:
    """Whether nothing that was read needs what was not: a rollback its message, a result its call, a file its place."""
    read = [entry for entry in entries if (entry.seq or 0) > last]
    shown = [entry for entry in read if type(entry) not in TURNS_BACK and (entry.seq or 0) in seen]
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
    """Messages between two numbers that this counter has not counted, oldest first, so many at a time."""
    values = {"this": thread, "after": after, "upto": upto, "counter_is": counter, "most": BATCH}
    return tuple(map(entry_of, UNCOUNTED.rows(connection, values)))


def set_tokens(connection: Connection, thread: str, counter: str, tokens: Mapping[str, int]) -> None:
    """Keep what entries count, by their ids: another thread under the same id has others."""
    rows = [{"this": thread, "id_is": id, "new_tokens": count, "new_counter": counter} for id, count in tokens.items()]
    COUNT.many(connection, rows)
