"""Cache of recently read logs. Logs only grow, so a cached log is never wrong; it can only lack new entries.

Cached messages remember their tokens and bytes, which makes the next page of a thread cheap.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from sys import getsizeof
from typing import get_args

from recto.config.run_settings import LogCacheSettings
from recto.conversation.log import ROLLBACK_MARKERS, Entry, StateChanged, messages_of
from recto.conversation.messages import Message, UnreadMessages, texts_of
from recto.page.prefix import AnsweredPage
from recto.page.text.tokens import OFFLINE, Calibration, TokenCounter, count_new, tokens_of
from recto.store.log.logs import EndQuery, LogEnd, MissingCounts
from recto.store.store import Store

# Memory of an entry without its texts. Texts are counted twice, because pages store them as bytes. A test measures
# this.
ENTRY_BYTES = 1_280
MESSAGES: tuple[type[Message], ...] = get_args(Message)


@dataclass(frozen=True, kw_only=True)
class CachedLog:
    """The log of a thread, and what `model` last reported about its tokens.

    `thread_created` distinguishes a deleted thread from a new one with the same id. `quote` is text that pages show
    besides the entries and whose bytes are remembered. `history` limits how many messages pages can show; None sets no
    limit. `last_answer` is the last page that was answered.
    """

    entries: tuple[Entry, ...] = ()
    calibration: Calibration | None = None
    model: str = ""
    thread_created: datetime | None = None
    quote: str = ""
    history: int | None = None
    last_answer: AnsweredPage | None = None


@dataclass(frozen=True, kw_only=True)
class LogQuery:
    """A query for the log of a thread up to a number. `history` limits the messages in a page; None sets no limit."""

    thread: str
    last_seq: int
    thread_created: datetime | None = None
    history: int | None = None
    counter: TokenCounter = OFFLINE


@dataclass(frozen=True, kw_only=True)
class _CacheItem:
    log: CachedLog
    entry_bytes: int

    @property
    def bytes(self) -> int:
        return self.entry_bytes + _text_size(self.log.quote)


class LogCache:
    """The logs of the most recently used threads, up to limits."""

    def __init__(self, store: Store, settings: LogCacheSettings | None = None) -> None:
        self._store = store
        self._settings = settings or LogCacheSettings()
        self._items: OrderedDict[str, _CacheItem] = OrderedDict()
        self._entry_count = 0
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """The size of all cached logs, including the page bytes that their entries remember."""
        return self._bytes

    async def read(self, query: LogQuery) -> CachedLog:
        """Return a log up to a number. Read newer entries from the store, and only the visible end of a long log."""
        item = self._items.get(query.thread)
        log = item.log if item and item.log.thread_created == query.thread_created else CachedLog()
        is_long_enough = log.history is None or (query.history is not None and query.history <= log.history)
        if not log.entries or not is_long_enough:
            return await self._read(query)
        if _last_seq(log.entries) >= query.last_seq:
            return log
        newer = await self._store.log.read_after(query.thread, _last_seq(log.entries))
        if is_unread(log.entries) and not ROLLBACK_MARKERS.isdisjoint(map(type, newer)):
            # The rollback may affect entries that the cache lacks.
            return await self._read(query)
        return replace(log, entries=(*log.entries, *newer), quote="", last_answer=None)

    async def _read(self, query: LogQuery) -> CachedLog:
        if query.last_seq == 0:
            return CachedLog(thread_created=query.thread_created)
        end = await self._read_end(query) if query.last_seq >= self._settings.long else None
        if end is not None:
            history = query.history if end.is_windowed else None
            return CachedLog(entries=end.entries, thread_created=query.thread_created, history=history)
        entries = tuple(await self._store.log.read_after(query.thread, 0))
        return CachedLog(entries=entries, thread_created=query.thread_created)

    async def _read_end(self, query: LogQuery) -> LogEnd | None:
        least = self._settings.long // 2
        end_query = EndQuery(thread=query.thread, counter=query.counter.name, history=query.history, least=least)
        end = await self._store.log.read_end(end_query)
        if isinstance(end, MissingCounts):
            # Store missing token counts of old entries, so that later readers find them
            upto = end.upto
            thread, counter, last = query.thread, query.counter, 0
            while entries := await self._store.log.list_uncounted(thread, counter.name, after=last, upto=upto):
                messages = messages_of(entries)
                await asyncio.to_thread(count_new, messages, counter)
                counts = {message.id: tokens_of(message, counter) for message in messages}
                await self._store.log.set_tokens(thread, counter.name, counts)
                last = _last_seq(entries)
            end = await self._store.log.read_end(end_query)
        return end if isinstance(end, LogEnd) else None

    def put(self, thread: str, log: CachedLog) -> None:
        """Cache a log for the next run. Evict the least recently used logs."""
        # If the log continues the cached one, measure only its new entries.
        before, measured, size = self._items.get(thread), 0, 0
        old = before.log.entries if before else ()
        if before and old and len(old) <= len(log.entries) and old[-1] is log.entries[len(old) - 1]:
            measured, size = len(old), before.entry_bytes
        item = _CacheItem(log=log, entry_bytes=size + sum(map(_size, log.entries[measured:])))
        self.drop(thread)
        self._items[thread] = item
        self._entry_count += len(log.entries)
        self._bytes += item.bytes
        limits = self._settings
        while len(self._items) > limits.threads or self._entry_count > limits.entries or self._bytes > limits.bytes:
            self.drop(next(iter(self._items)))

    async def drop_deleted(self) -> int:
        """Drop threads that any process has deleted. Return the number of dropped threads."""
        threads = tuple(self._items)
        deleted = frozenset(threads) - await self._store.threads.find_existing(threads)
        for thread in deleted:
            self.drop(thread)
        return len(deleted)

    def drop(self, thread: str) -> None:
        """Drop the log of a thread."""
        if item := self._items.pop(thread, None):
            self._entry_count -= len(item.log.entries)
            self._bytes -= item.bytes


def _size(entry: Entry) -> int:
    texts = texts_of(entry) if isinstance(entry, MESSAGES) else ()
    # Besides messages, only state changes can be long.
    texts = (entry.value,) if isinstance(entry, StateChanged) else texts
    return ENTRY_BYTES + sum(map(_text_size, texts))


def _text_size(text: str) -> int:
    """Return the size of a text as a string plus its size as bytes of a page.

    The widest character determines the width of all characters of a string.
    """
    return getsizeof(text) + (len(text) if text.isascii() else len(text.encode(errors="replace")))


def is_unread(log: Sequence[Entry]) -> bool:
    """Return True if the beginning of a log is only in the store."""
    return bool(log) and isinstance(log[0], UnreadMessages)


def _last_seq(entries: Sequence[Entry]) -> int:
    return (entries[-1].seq or 0) if entries else 0
