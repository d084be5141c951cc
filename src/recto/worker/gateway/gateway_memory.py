"""Caches of the gateway. Losing an entry costs time and nothing else."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from recto.page.prefix import AnsweredPage
from recto.worker.gateway.remembered import RememberedItems

# An older page may have been deleted from the store, with its thread or by cleaning.
PAGE_LIFE = timedelta(hours=1)
# About the memory of a part and its segment besides the bytes of the segment; folded parts take more.
PART_BYTES = 640


class AnsweredPages:
    """The last answered page of each conversation, by its run, up to a limit in bytes. The oldest make room.

    The next page of a conversation is compared with it, to report savings and breaks of the prefix.
    """

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit
        self._size = 0
        self._pages = OrderedDict[str, _TimedPage]()

    def add(self, page: AnsweredPage, time: datetime) -> None:
        """Add a page that was answered at a time."""
        size = sum(page.manifest.sizes) + PART_BYTES * len(page.manifest.parts)
        self._remove(page.run)
        if size > self._limit:
            return
        self._pages[page.run] = _TimedPage(page, time, size)
        self._size += size
        while self._size > self._limit:
            self._remove(next(iter(self._pages)))

    def pop(self, run: str, now: datetime) -> AnsweredPage | None:
        """Remove the page of a run and return it, or None if it is unknown or too old.

        A conversation compares a page once: its next request is compared with a newer one.
        """
        entry = self._remove(run)
        return entry.page if entry and now - entry.time < PAGE_LIFE else None

    def clear(self) -> None:
        """Remove all pages."""
        self._pages.clear()
        self._size = 0

    def _remove(self, run: str) -> _TimedPage | None:
        entry = self._pages.pop(run, None)
        self._size -= entry.size if entry else 0
        return entry


class _TimedPage(NamedTuple):
    """A page, the time it was answered, and its size in bytes."""

    page: AnsweredPage
    time: datetime
    size: int


@dataclass(frozen=True, kw_only=True)
class GatewayMemory:
    """The caches of a gateway. Each has its own share of one limit in bytes."""

    items: RememberedItems = field(default_factory=RememberedItems)
    pages: AnsweredPages = field(default_factory=AnsweredPages)

    @classmethod
    def within(cls, limit: int) -> GatewayMemory:
        """Return empty caches that take up to `limit` bytes together."""
        return cls(items=RememberedItems(limit // 2), pages=AnsweredPages(limit // 2))

    def forget(self) -> None:
        """Clear all caches."""
        self.items.forget()
        self.pages.clear()
