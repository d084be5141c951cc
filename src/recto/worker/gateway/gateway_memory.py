"""Caches of the gateway. A lost entry costs only time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple

from recto.conversation.messages import Message
from recto.page.prefix import AnsweredPage
from recto.page.sent_request import SentRequest, count_shared

# Maximum age of a cached page. The store may have deleted older pages, with their thread or by cleanup.
PAGE_LIFE = timedelta(hours=1)
# Approximate memory of a parsed message per character of its JSON.
MESSAGE_WEIGHT = 4
# Approximate memory of a part and its segment, without the segment's own bytes. Folded parts take more.
PART_BYTES = 640
# Maximum number of cached requests per owner, which limits the conversations that an agent can have at the same time.
OWNER_REQUESTS = 16


class ItemKey(NamedTuple):
    """The owner of a conversation, and the head of the conversation up to an item."""

    owner: str
    head: str


class ParsedItems:
    """The messages of parsed items, up to a limit in bytes. The least recently used items are evicted.

    Threads that parse long requests share this cache.
    """

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit
        self._size = 0
        self._items = OrderedDict[ItemKey, tuple[int, tuple[Message, ...]]]()
        self._lock = Lock()

    def find(self, key: ItemKey) -> tuple[Message, ...] | None:
        """Return the messages of an item, or None."""
        with self._lock:
            item = self._items.get(key)
            if item is None:
                return None
            self._items.move_to_end(key)
            return item[1]

    def add(self, key: ItemKey, characters: int, messages: tuple[Message, ...]) -> None:
        """Add the messages of an item whose JSON has this many characters."""
        size = characters * MESSAGE_WEIGHT
        with self._lock:
            self._size += size - self._items.pop(key, (0,))[0]
            self._items[key] = size, messages
            while self._size > self._limit:
                _, (oldest_size, _) = self._items.popitem(last=False)
                self._size -= oldest_size

    def clear(self) -> None:
        """Remove all items."""
        with self._lock:
            self._items.clear()
            self._size = 0


class AnsweredPages:
    """The last answered page of each conversation, by its run, up to a limit in bytes. The oldest pages are evicted.

    The gateway compares the next page of a conversation with this page, to report savings and prefix breaks.
    """

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit
        self._size = 0
        self._pages = OrderedDict[str, _TimedPage]()

    def add(self, page: AnsweredPage, time: datetime) -> None:
        """Add a page that was answered at the given time."""
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

        A page is compared only once, because the following request is compared with a newer page.
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


class ParsedRequest(NamedTuple):
    """A parsed request, the head of its conversation up to each item, and the messages of each readable item.

    `size` is its approximate memory in bytes.
    """

    request: SentRequest
    heads: Sequence[str]
    messages: Sequence[tuple[Message, ...]]
    size: int

    def continues(self, other: ParsedRequest) -> bool:
        """Return True if this request shares more than half of another request's items.

        Agents mark or change the last items.
        """
        return 2 * count_shared(self.request, other.request) > len(other.request.items)


class ParsedRequests:
    """The requests of each owner and wire format that were parsed last, up to a limit in bytes.

    A request replaces the requests that it continues. Owners see only their own requests. The requests of the least
    active owner are evicted.
    """

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit
        self._size = 0
        self._requests = OrderedDict[tuple[str, str], tuple[ParsedRequest, ...]]()

    def find(self, owner: str, wire: str) -> tuple[ParsedRequest, ...]:
        """Return the requests of an owner in a wire format, oldest first."""
        return self._requests.get((owner, wire), ())

    def add(self, owner: str, wire: str, request: ParsedRequest) -> None:
        """Add a request.

        Skip a request that takes more than half of the limit, because it would displace all others.
        """
        if 2 * request.size > self._limit:
            return
        requests = self._requests.pop((owner, wire), ())
        others = [one for one in requests if not request.continues(one)][-OWNER_REQUESTS + 1 :]
        self._requests[owner, wire] = (*others, request)
        self._size += request.size + _sum_sizes(others) - _sum_sizes(requests)
        while self._size > self._limit:
            key, (oldest, *rest) = next(iter(self._requests.items()))
            self._size -= oldest.size
            if rest:
                self._requests[key] = tuple(rest)
            else:
                del self._requests[key]

    def clear(self) -> None:
        """Remove all requests."""
        self._requests.clear()
        self._size = 0


def _sum_sizes(requests: Iterable[ParsedRequest]) -> int:
    return sum([one.size for one in requests])


@dataclass(frozen=True, kw_only=True)
class GatewayMemory:
    """The caches of a gateway. Each has its own share of one limit in bytes."""

    items: ParsedItems = field(default_factory=ParsedItems)
    requests: ParsedRequests = field(default_factory=ParsedRequests)
    pages: AnsweredPages = field(default_factory=AnsweredPages)

    @classmethod
    def with_limit(cls, limit: int) -> GatewayMemory:
        """Return empty caches that take up to `limit` bytes together."""
        quarter = limit // 4
        return cls(items=ParsedItems(2 * quarter), requests=ParsedRequests(quarter), pages=AnsweredPages(quarter))

    def clear(self) -> None:
        """Clear all caches."""
        self.items.clear()
        self.requests.clear()
        self.pages.clear()
