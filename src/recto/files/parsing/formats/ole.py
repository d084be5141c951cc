"""Streams of the container that old Office programs write. Bears damage: what cannot be followed ends there."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

_ENTRY = 128
_HEAD_PLACES = 109
_FREE = 0xFFFFFFFA
_STREAM, _ROOT = 2, 5
_HEAD = 512


class Container:
    """A compound file by its sectors."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._size = 1 << min(12, max(9, _whole(data, 30, "<H")))
        self._small_below = _whole(data, 56, "<I")
        self._next = self._table(self._places())
        self._next_small = self._table(self._chain(_whole(data, 60, "<I"), self._next))
        self._entries = list(self._directory())
        start = next((start for _, kind, start, _ in self._entries if kind == _ROOT), _FREE)
        self._small = b"".join(map(self._sector, self._chain(start, self._next)))

    def stream(self, *names: str) -> bytes:
        """The first stream of one of these names, in whatever folder; nothing where there is none."""
        for name, kind, start, size in self._entries:
            if kind == _STREAM and name in names and size >= self._small_below:
                return b"".join(map(self._sector, self._chain(start, self._next)))[:size]
            if kind == _STREAM and name in names:
                parts = (self._small[one << 6 : (one + 1) << 6] for one in self._chain(start, self._next_small))
                return b"".join(parts)[:size]
        return b""

    def _sector(self, place: int) -> bytes:
        return self._data[(place + 1) * self._size : (place + 2) * self._size]

    def _places(self) -> Iterator[int]:
        """The sectors that tell which follows which."""
        yield from struct.unpack_from(f"<{_HEAD_PLACES}I", self._data.ljust(_HEAD, b"\xff"), 76)
        place, seen = _whole(self._data, 68, "<I"), set[int]()
        while place < _FREE and place not in seen and (sector := self._sector(place)):
            seen.add(place)
            *places, place = _numbers(sector)
            yield from places

    def _table(self, sectors: Iterator[int]) -> Sequence[int]:
        # One that is named twice is read once: a small file may name the same millions of times.
        return _numbers(b"".join(self._sector(one) for one in dict.fromkeys(sectors) if one < _FREE))

    def _chain(self, start: int, following: Sequence[int]) -> Iterator[int]:
        seen = set[int]()
        while start < len(following) and start not in seen:
            seen.add(start)
            yield start
            start = following[start]

    def _directory(self) -> Iterator[tuple[str, int, int, int]]:
        """Name, kind, first sector and size of each entry."""
        data = b"".join(map(self._sector, self._chain(_whole(self._data, 48, "<I"), self._next)))
        for at in range(0, len(data) - _ENTRY + 1, _ENTRY):
            entry = data[at : at + _ENTRY]
            length = min(64, _whole(entry, 64, "<H"))
            name = entry[: max(0, length - 2)].decode("utf-16-le", "replace")
            yield name, entry[66], _whole(entry, 116, "<I"), _whole(entry, 120, "<I")


def _numbers(sectors: bytes) -> Sequence[int]:
    return memoryview(sectors[: len(sectors) // 4 * 4]).cast("I")


def _whole(data: bytes, at: int, shape: str) -> int:
    return int(struct.unpack_from(shape, data.ljust(_HEAD, b"\0"), at)[0])
