"""Logs this process has read lately. A log only grows, so what is here is never wrong, only short.

Messages that stay the same objects remember their tokens and bytes: the next page of a thread costs little.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recto.page import Calibration, Entry
from recto.store.store import Store


@dataclass(frozen=True, kw_only=True)
class ShelfSettings:
    """How many threads are kept, and how many entries all together."""

    threads: int = 256
    entries: int = 100_000


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A thread as far as it was read, and what the provider of `model` last said of its tokens.

    `born` is when it was made: a thread that was deleted and one made later under its id are not the same.
    """

    entries: tuple[Entry, ...] = ()
    last: Calibration | None = None
    model: str = ""
    born: datetime | None = None


class Shelf:
    """The threads used last, up to a bound."""

    def __init__(self, store: Store, settings: ShelfSettings | None = None) -> None:
        self._store = store
        self._settings = settings or ShelfSettings()
        self._volumes: OrderedDict[str, Volume] = OrderedDict()
        self._count = 0

    async def take(self, thread: str, last_seq: int, born: datetime | None = None) -> Volume:
        """A log up to a number: what is here, and from the store what came since."""
        known = self._volumes.get(thread, Volume())
        if known.born != born:
            known = Volume(born=born)
        if _last_seq(known.entries) >= last_seq:
            return known
        newer = await self._store.log_after(thread, _last_seq(known.entries))
        return Volume(entries=(*known.entries, *newer), last=known.last, model=known.model, born=born)

    def put(self, thread: str, volume: Volume) -> None:
        """Keep a log for the next run. The one not used for longest makes room."""
        self.drop(thread)
        self._volumes[thread] = volume
        self._count += len(volume.entries)
        while len(self._volumes) > self._settings.threads or self._count > self._settings.entries:
            _, oldest = self._volumes.popitem(last=False)
            self._count -= len(oldest.entries)

    def drop(self, thread: str) -> None:
        """Keep nothing of a thread: its messages remember what is too large to be kept."""
        self._count -= len(self._volumes.pop(thread, Volume()).entries)


def _last_seq(entries: Sequence[Entry]) -> int:
    return (entries[-1].seq or 0) if entries else 0
