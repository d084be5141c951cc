"""How often somebody may come: so many times a minute, some at once. Refuses to remember more than so many names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

MOST_NAMES = 10_000
MINUTE = 60.0
# Whoever has one address of IPv6 has all of its network.
NETWORK_BITS = 64


class Buckets:
    """A bucket of visits for each name, filled evenly over the minute; no limit where `per_minute` is 0.

    When there are too many names, the one not heard of for longest is forgotten: its bucket is full by then, or nearly.
    """

    def __init__(self, per_minute: int, ticks: Callable[[], float], *, most_names: int = MOST_NAMES) -> None:
        self._per_minute = per_minute
        self._ticks = ticks
        self._most_names = most_names
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def is_empty(self) -> bool:
        """Whether nobody was ever counted."""
        return not self._buckets

    def wait(self, name: str) -> float:
        """In how many seconds somebody may come again; 0 is now. Looking takes nothing."""
        left = self._left(name, self._ticks())
        return 0.0 if left >= 1 or not self._per_minute else (1 - left) * MINUTE / self._per_minute

    def take(self, name: str) -> float:
        """Count a visit, unless it is one too many: then in how many seconds it is not."""
        if not self._per_minute:
            return 0.0
        now = self._ticks()
        left = self._left(name, now)
        if left < 1:
            return (1 - left) * MINUTE / self._per_minute
        self._buckets[name] = (left - 1, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._most_names:
            self._buckets.popitem(last=False)
        return 0.0

    def _left(self, name: str, now: float) -> float:
        left, then = self._buckets.get(name, (float(self._per_minute), now))
        return min(float(self._per_minute), left + (now - then) * self._per_minute / MINUTE)


def neighbourhood(peer: str) -> str:
    """What stands for an address in a bucket."""
    try:
        address = ip_address(peer)
    except ValueError:
        return peer
    if not isinstance(address, IPv6Address):
        return peer
    mapped = address.ipv4_mapped
    return str(mapped) if mapped else str(ip_network((int(address), NETWORK_BITS), strict=False))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
