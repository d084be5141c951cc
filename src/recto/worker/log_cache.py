"""Logs this process has read lately. A log only grows, so what is here is never wrong, only short.

Messages that stay the same objects remember their tokens and bytes: the next page of a thread costs little.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from sys import getsizeof
from typing import get_args

from recto.config.run_settings import LogCacheSettings
from recto.conversation.log import Entry
from recto.conversation.messages import Message, texts_of
from recto.page.text.tokens import Calibration
from recto.store.store import Store

# What an entry takes besides its texts, which are there a second time as bytes of a page.
ENTRY_BYTES = 1_024
MESSAGES: tuple[type[Message], ...] = get_args(Message)


@dataclass(frozen=True, kw_only=True)
class CachedLog:
    """A thread as far as it was read, and what the provider of `model` last said of its tokens.

    `born` is when it was made: a thread that was deleted and one made later under its id are not the same. `quote` is
    the text that its pages carry besides its entries, which remember it with them.
    """

    entries: tuple[Entry, ...] = ()
    last: Calibration | None = None
    model: str = ""
    born: datetime | None = None
    quote: str = ""


class LogCache:
    """The threads used last, up to a bound."""

    def __init__(self, store: Store, settings: LogCacheSettings | None = None) -> None:
        self._store = store
        self._settings = settings or LogCacheSettings()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._count = 0
        self._bytes = 0

    async def take(self, thread: str, last_seq: int, born: datetime | None = None) -> CachedLog:
        """A log up to a number: what is here, and from the store what came since."""
        kept = self._kept.get(thread)
        known = kept.log if kept and kept.log.born == born else CachedLog(born=born)
        if _last_seq(known.entries) >= last_seq:
            return known
        newer = await self._store.log_after(thread, _last_seq(known.entries))
        return CachedLog(entries=(*known.entries, *newer), last=known.last, model=known.model, born=born)

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
        return self.entry_bytes + 2 * getsizeof(self.log.quote)


def _weighed(log: CachedLog, before: _Kept | None) -> _Kept:
    """A log with its bytes. Of one that only grew, what is new is weighed."""
    known = before.log.entries if before else ()
    if before and known and len(known) <= len(log.entries) and known[-1] is log.entries[len(known) - 1]:
        return _Kept(log=log, entry_bytes=before.entry_bytes + sum(map(_size, log.entries[len(known) :])))
    return _Kept(log=log, entry_bytes=sum(map(_size, log.entries)))


def _size(entry: Entry) -> int:
    texts = texts_of(entry) if isinstance(entry, MESSAGES) else ()
    return ENTRY_BYTES + 2 * sum(map(getsizeof, texts))


def _last_seq(entries: Sequence[Entry]) -> int:
    return (entries[-1].seq or 0) if entries else 0
