"""Logs this process has read lately. A log only grows, so what is here is never wrong, only short.

Messages that stay the same objects remember their tokens and bytes: the next page of a thread costs little.
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
from recto.conversation.log import TURNS_BACK, Entry, StateChanged, messages_of
from recto.conversation.messages import Message, UnreadMessages, texts_of
from recto.page.prefix import AnsweredPage
from recto.page.text.tokens import OFFLINE, Calibration, TokenCounter, count_new, tokens_of
from recto.store.log.read_end import EndQuery, LogEnd, MissingCounts
from recto.store.store import Store

# What an entry takes besides its texts, which are there a second time as bytes of a page. A test holds it to the truth.
ENTRY_BYTES = 1_280
MESSAGES: tuple[type[Message], ...] = get_args(Message)


@dataclass(frozen=True, kw_only=True)
class CachedLog:
    """A thread as far as it was read, and what the provider of `model` last said of its tokens.

    `born` is when it was made: a thread that was deleted and one made later under its id are not the same. `quote` is
    the text that its pages carry besides its entries, which remember it with them. `history` is how many messages of it
    pages can show at most; None: as many as they like. `answered` is the last page that was; its bytes are theirs.
    """

    entries: tuple[Entry, ...] = ()
    last: Calibration | None = None
    model: str = ""
    born: datetime | None = None
    quote: str = ""
    history: int | None = None
    answered: AnsweredPage | None = None


@dataclass(frozen=True, kw_only=True)
class LogQuery:
    """A log up to a number, of a thread made at a time, for pages with so many messages of history (None: all)."""

    thread: str
    last_seq: int
    born: datetime | None = None
    history: int | None = None
    counter: TokenCounter = OFFLINE


class LogCache:
    """The threads used last, up to a bound."""

    def __init__(self, store: Store, settings: LogCacheSettings | None = None) -> None:
        self._store = store
        self._settings = settings or LogCacheSettings()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._count = 0
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """What all that is kept weighs, with what pages remember of it."""
        return self._bytes

    async def take(self, query: LogQuery) -> CachedLog:
        """A log up to a number: what is here, and from the store what came since. Of a long one, what can be shown."""
        kept = self._kept.get(query.thread)
        known = kept.log if kept and kept.log.born == query.born else CachedLog(born=query.born)
        if not _can_show(known, query.history):
            return await self._read(query)
        if _last_seq(known.entries) >= query.last_seq:
            return known
        if not known.entries:
            return await self._read(query)
        newer = await self._store.log_after(query.thread, _last_seq(known.entries))
        if is_unread(known.entries) and not TURNS_BACK.isdisjoint(map(type, newer)):
            # It may be turned back to what was not read.
            return await self._read(query)
        return replace(known, entries=(*known.entries, *newer), quote="", answered=None)

    async def _read(self, query: LogQuery) -> CachedLog:
        end = await self._read_end(query) if query.last_seq >= self._settings.long else None
        if end is not None:
            history = query.history if end.is_windowed else None
            return CachedLog(entries=end.entries, born=query.born, history=history)
        return CachedLog(entries=tuple(await self._store.log_after(query.thread, 0)), born=query.born)

    async def _read_end(self, query: LogQuery) -> LogEnd | None:
        counter, least = query.counter, self._settings.long // 2
        asked = EndQuery(thread=query.thread, counter=counter.name, history=query.history, least=least)
        end = await self._store.log_end(asked)
        if isinstance(end, MissingCounts):
            await self._count_old(query, end.upto)
            end = await self._store.log_end(asked)
        return end if isinstance(end, LogEnd) else None

    async def _count_old(self, query: LogQuery, upto: int) -> None:
        """Count what was written before counts were stored, or counted by another; once for all who read it later."""
        thread, counter, last = query.thread, query.counter, 0
        while some := await self._store.uncounted(thread, counter.name, after=last, upto=upto):
            messages = messages_of(some)
            await asyncio.to_thread(count_new, messages, counter)
            counts = {message.id: tokens_of(message, counter) for message in messages}
            await self._store.set_tokens(thread, counter.name, counts)
            last = _last_seq(some)

    def put(self, thread: str, log: CachedLog) -> None:
        """Keep a log for the next run. The one not used for longest makes room."""
        kept = _weighed(log, self._kept.get(thread))
        self.drop(thread)
        self._kept[thread] = kept
        self._count += len(log.entries)
        self._bytes += kept.bytes
        most = self._settings
        while len(self._kept) > most.threads or self._count > most.entries or self._bytes > most.bytes:
            self.drop(next(iter(self._kept)))

    async def drop_gone(self) -> int:
        """Keep nothing of threads that were deleted, whoever did. Returns how many there were."""
        here = tuple(self._kept)
        gone = frozenset(here) - await self._store.known_threads(here)
        for thread in gone:
            self.drop(thread)
        return len(gone)

    def drop(self, thread: str) -> None:
        """Keep nothing of a thread: its messages remember what is too large to be kept."""
        if kept := self._kept.pop(thread, None):
            self._count -= len(kept.log.entries)
            self._bytes -= kept.bytes


@dataclass(frozen=True, kw_only=True)
class _Kept:
    log: CachedLog
    entry_bytes: int

    @property
    def bytes(self) -> int:
        return self.entry_bytes + _text_size(self.log.quote)


def _weighed(log: CachedLog, before: _Kept | None) -> _Kept:
    """A log with its bytes. Of one that only grew, what is new is weighed."""
    known = before.log.entries if before else ()
    if before and known and len(known) <= len(log.entries) and known[-1] is log.entries[len(known) - 1]:
        return _Kept(log=log, entry_bytes=before.entry_bytes + sum(map(_size, log.entries[len(known) :])))
    return _Kept(log=log, entry_bytes=sum(map(_size, log.entries)))


def _size(entry: Entry) -> int:
    texts = texts_of(entry) if isinstance(entry, MESSAGES) else ()
    # Markers are short, but for this.
    texts = (entry.value,) if isinstance(entry, StateChanged) else texts
    return ENTRY_BYTES + sum(map(_text_size, texts))


def _text_size(text: str) -> int:
    """As text, of which each character takes as much as the widest, and as bytes of a page."""
    return getsizeof(text) + (len(text) if text.isascii() else len(text.encode(errors="replace")))


def is_unread(log: Sequence[Entry]) -> bool:
    """Whether some of a log was left in the store. It stands before all else."""
    return bool(log) and isinstance(log[0], UnreadMessages)


def _can_show(log: CachedLog, history: int | None) -> bool:
    return log.history is None or (history is not None and history <= log.history)


def _last_seq(entries: Sequence[Entry]) -> int:
    return (entries[-1].seq or 0) if entries else 0
