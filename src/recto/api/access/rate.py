"""Rate limits per name: token buckets per minute, for a bounded number of names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

MOST_NAMES = 10_000
MINUTE = 60.0
# Prefix length of an IPv6 network. All its addresses share a limit, because they usually have one owner.
NETWORK_BITS = 64


class Buckets:
    """A token bucket per name, refilled evenly over a minute; 0 `per_minute` sets no limit.

    Beyond `most_names`, the least recently used bucket is dropped. It is full or nearly full by then.
    """

    def __init__(self, per_minute: int, ticks: Callable[[], float], *, most_names: int = MOST_NAMES) -> None:
        self._per_minute = per_minute
        self._ticks = ticks
        self._most_names = most_names
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def is_empty(self) -> bool:
        """True if no request was counted yet."""
        return not self._buckets

    def wait(self, name: str) -> float:
        """Return the seconds until the next request is allowed; 0 means now. Counts nothing."""
        tokens = self._count_tokens(name, self._ticks())
        return 0.0 if tokens >= 1 or not self._per_minute else (1 - tokens) * MINUTE / self._per_minute

    def take(self, name: str) -> float:
        """Count a request and return 0. If it exceeds the limit, return the seconds to wait instead."""
        if not self._per_minute:
            return 0.0
        now = self._ticks()
        tokens = self._count_tokens(name, now)
        if tokens < 1:
            return (1 - tokens) * MINUTE / self._per_minute
        self._buckets[name] = (tokens - 1, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._most_names:
            self._buckets.popitem(last=False)
        return 0.0

    def _count_tokens(self, name: str, now: float) -> float:
        tokens, then = self._buckets.get(name, (float(self._per_minute), now))
        return min(float(self._per_minute), tokens + (now - then) * self._per_minute / MINUTE)


def neighbourhood(peer: str) -> str:
    """Return the bucket name of an address. All addresses of an IPv6 network share one bucket."""
    try:
        address = ip_address(peer)
    except ValueError:
        return peer
    if not isinstance(address, IPv6Address):
        return peer
    mapped = address.ipv4_mapped
    return str(mapped) if mapped else str(ip_network((int(address), NETWORK_BITS), strict=False))
