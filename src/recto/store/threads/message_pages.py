"""SQL of a thread's visible messages in pages, oldest first. Reads the page, not the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from sqlalchemy import Connection, bindparam, select

from recto.conversation.log import MARKERS, Entry, VisibleNumbers
from recto.errors import WireError
from recto.store.log.entry_rows import ENTRY_COLUMNS, parse_entry, read_visible
from recto.store.schema import LOG
from recto.store.statement import Statement
from recto.store.threads.thread_rows import StoredThread, get_thread

BATCH = 256
NOT_SEEN = "there is no message {id!r} in view of this thread; read it from its beginning, without `since`"
ENTRIES_AFTER = Statement(
    select(*ENTRY_COLUMNS)
    .where(LOG.c.thread == bindparam("this"), LOG.c.seq > bindparam("after"))
    .order_by(LOG.c.seq)
    .limit(bindparam("most"))
)
WRITERS = Statement(
    select(LOG.c.id, LOG.c.run).where(
        LOG.c.thread == bindparam("this"),
        LOG.c.seq >= bindparam("first"),
        LOG.c.seq <= bindparam("last"),
        LOG.c.run.is_not(None),
    )
)
NUMBER = Statement(select(LOG.c.seq).where(LOG.c.thread == bindparam("this"), LOG.c.id == bindparam("id_is")))


@dataclass(frozen=True, kw_only=True)
class MessagesQuery:
    """The requested page: messages after `since` or from the start, up to `limit` messages and about `most_bytes`.

    `with_runs` adds the runs that wrote them.
    """

    thread: str
    since: str | None
    limit: int
    most_bytes: int
    with_runs: bool = False


@dataclass(frozen=True, kw_only=True)
class MessagesPage:
    """A thread, a page of its visible entries (markers included), and the message after which the next page starts.

    `runs` maps entries to the runs that wrote them. Entries copied by a fork have none.
    """

    thread: StoredThread
    entries: tuple[Entry, ...]
    next: str | None
    runs: Mapping[str, str] = field(default_factory=dict[str, str])


def messages_page(connection: Connection, owner: str, query: MessagesQuery) -> MessagesPage:
    """Return a page of a thread's visible messages, oldest first.

    Raise NotFound for another user's thread, WireError if `since` is not visible.
    """
    page = _read_page(connection, owner, query)
    return replace(page, runs=_runs(connection, query.thread, page.entries)) if query.with_runs else page


def _read_page(connection: Connection, owner: str, query: MessagesQuery) -> MessagesPage:
    thread, seen = get_thread(connection, owner, query.thread), read_visible(connection, query.thread)
    after = _number_of(connection, query.thread, query.since, seen) if query.since is not None else 0
    entries, last, count, size = list[Entry](), None, 0, 0
    for entry, weight in _forwards(connection, query.thread, after):
        if (entry.seq or 0) not in seen:
            continue
        if type(entry) not in MARKERS:
            if count == query.limit or size >= query.most_bytes:
                return MessagesPage(thread=thread, entries=tuple(entries), next=last)
            last, count, size = entry.id, count + 1, size + weight
        entries.append(entry)
    return MessagesPage(thread=thread, entries=tuple(entries), next=None)


def _number_of(connection: Connection, thread: str, id: str, seen: VisibleNumbers) -> int:
    rows = NUMBER.rows(connection, {"this": thread, "id_is": id})
    number = cast("int", rows[0][0]) if rows else 0
    if number not in seen:
        raise WireError(where="since", problem=NOT_SEEN.format(id=id[:64]))
    return number


def _forwards(connection: Connection, thread: str, after: int) -> Iterator[tuple[Entry, int]]:
    while rows := ENTRIES_AFTER.rows(connection, {"this": thread, "after": after, "most": BATCH}):
        for row in rows:
            entry = parse_entry(row)
            after = entry.seq or 0
            yield entry, len(cast("bytes", row[1]))


def _runs(connection: Connection, thread: str, entries: Sequence[Entry]) -> Mapping[str, str]:
    if not entries:
        return {}
    rows = WRITERS.rows(connection, {"this": thread, "first": entries[0].seq or 0, "last": entries[-1].seq or 0})
    return dict(cast("Sequence[tuple[str, str]]", [tuple(row) for row in rows]))
