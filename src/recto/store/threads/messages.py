"""Messages of threads as clients show them: pages, days of history, and queued messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from sqlalchemy import Connection, bindparam, select

from recto.config.access_settings import BodyLimits
from recto.conversation.log import MARKERS, Entry
from recto.errors import WireError
from recto.store.database.database import Database, Repository, Result, read_transaction
from recto.store.log.entry_rows import ENTRY_COLUMNS, parse_entry, read_visible
from recto.store.schema import LOG
from recto.store.statement import Statement
from recto.store.threads.history import HistoryDay, HistoryQuery, read_day
from recto.store.threads.queued_messages import InputsNeeded, ParsedRuns, QueuedMessage, list_queued, parse_requests
from recto.store.threads.thread_rows import StoredThread, get_thread

BATCH = 256
NOT_VISIBLE = "there is no visible message {id!r} in this thread; read it from its beginning, without `since`"
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
FIND_NUMBER = Statement(select(LOG.c.seq).where(LOG.c.thread == bindparam("this"), LOG.c.id == bindparam("id_is")))


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


class Messages(Repository):
    """The messages of threads as clients show them."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._parsing = asyncio.Lock()

    async def read_day(self, owner: str, query: HistoryQuery) -> HistoryDay:
        """Return the newest day of a thread with messages to show (P13). Raise NotFound for another user's thread."""
        return await self._read_parsed(partial(read_day, owner=owner, query=query))

    @read_transaction
    def read_page(self, connection: Connection, owner: str, query: MessagesQuery) -> MessagesPage:
        """Return a page of a thread's visible messages, oldest first.

        Raise NotFound for another user's thread, WireError if `since` is not visible.
        """
        thread, visible = get_thread(connection, owner, query.thread), read_visible(connection, query.thread)
        after = 0
        if query.since is not None:
            rows = FIND_NUMBER.rows(connection, {"this": query.thread, "id_is": query.since})
            after = cast("int", rows[0][0]) if rows else 0
            if after not in visible:
                raise WireError(where="since", problem=NOT_VISIBLE.format(id=query.since[:64]))
        entries, last, next_since, count, size = list[Entry](), None, None, 0, 0
        for entry, entry_size in _iterate_after(connection, query.thread, after):
            if (entry.seq or 0) not in visible:
                continue
            if type(entry) not in MARKERS:
                if count == query.limit or size >= query.most_bytes:
                    next_since = last
                    break
                last, count, size = entry.id, count + 1, size + entry_size
            entries.append(entry)
        runs: Mapping[str, str] = {}
        if query.with_runs and entries:
            values = {"this": query.thread, "first": entries[0].seq or 0, "last": entries[-1].seq or 0}
            rows = cast("Sequence[tuple[str, str]]", WRITERS.rows(connection, values))
            runs = dict(rows)
        return MessagesPage(thread=thread, entries=tuple(entries), next=next_since, runs=runs)

    async def list_queued(self, thread: str, most_bytes: int = BodyLimits.queued_bytes) -> tuple[QueuedMessage, ...]:
        """Return the queued user messages of a thread, up to `most_bytes` of requests."""
        return await self._read_parsed(partial(list_queued, thread=thread, most_bytes=most_bytes))

    async def _read_parsed(self, read: Callable[..., Result | InputsNeeded]) -> Result:
        """Repeat a read until every needed request is parsed, so that the result comes from one transaction.

        Parse one request at a time, off the event loop.
        """
        requests: ParsedRuns = {}
        while isinstance(result := await self.database.read(partial(read, requests=requests)), InputsNeeded):
            async with self._parsing:
                requests = {**requests, **await asyncio.to_thread(parse_requests, result.runs)}
        return result


def _iterate_after(connection: Connection, thread: str, after: int) -> Iterator[tuple[Entry, int]]:
    """Yield the entries after a number with their stored size."""
    while rows := ENTRIES_AFTER.rows(connection, {"this": thread, "after": after, "most": BATCH}):
        for row in rows:
            entry = parse_entry(row)
            after = entry.seq or 0
            yield entry, len(cast("bytes", row[1]))
