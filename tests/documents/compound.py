"""Compound files of old Office programs: enough of the format for small ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field

SECTOR = 512
END, FREE, FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
NOBODY = 0xFFFFFFFF
# Shorter streams would need smaller sectors, so all are padded to this length.
SHORTEST = 4096


@dataclass(kw_only=True)
class _Entry:
    name: str
    kind: int
    data: bytes = b""
    size: int = 0
    children: list[int] = field(default_factory=list[int])
    start: int = END


def compound_file(streams: Mapping[str, bytes]) -> bytes:
    """Return a file with these streams. A `/` in a name separates the folder from the stream."""
    entries = _entries(streams)
    mini, mini_chain = bytearray(), list[int]()
    for entry in entries:
        if entry.kind == 2 and entry.size < SHORTEST:
            entry.start = _put(mini, mini_chain, entry.data, 64)
    entries[0].data, entries[0].size = bytes(mini), len(mini)
    body, chain = bytearray(), list[int]()
    for entry in entries:
        if entry.kind == 5 or entry.size >= SHORTEST:
            entry.start = _put(body, chain, entry.data, SECTOR)
    mini_fat = _numbers(mini_chain)
    mini_start = _put(body, chain, mini_fat, SECTOR)
    directory = b"".join(_directory_entry(entries, entry) for entry in entries)
    directory_start = _put(body, chain, directory, SECTOR)
    fat_count = 1
    while fat_count * SECTOR // 4 < len(chain) + fat_count:
        fat_count += 1
    fat_start = len(chain)
    chain += [FAT] * fat_count
    body += _numbers(chain).ljust(fat_count * SECTOR, b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + b"\x3e\0\x03\0\xfe\xff\x09\0\x06\0" + bytes(10)
    head += _numbers([fat_count, directory_start, 0, SHORTEST, mini_start, -(-len(mini_fat) // SECTOR), END, 0])
    head += _numbers(list(range(fat_start, fat_start + fat_count)))
    return head.ljust(SECTOR, b"\xff") + bytes(body)


def _entries(streams: Mapping[str, bytes]) -> list[_Entry]:
    entries = [_Entry(name="Root Entry", kind=5)]
    folders = {"": 0}
    for path, data in streams.items():
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = len(entries)
            entries[0].children.append(len(entries))
            entries.append(_Entry(name=folder, kind=1))
        entries[folders[folder]].children.append(len(entries))
        entries.append(_Entry(name=name, kind=2, data=data, size=len(data)))
    return entries


def _put(body: bytearray, chain: list[int], data: bytes, unit: int) -> int:
    """Add data in whole sectors and return the first sector."""
    count = -(-len(data) // unit)
    if not count:
        return END
    start = len(chain)
    body += data.ljust(count * unit, b"\0")
    chain += [*range(start + 1, start + count), END]
    return start


def _directory_entry(entries: list[_Entry], entry: _Entry) -> bytes:
    """Return an entry. Siblings follow one another to the right, in the order of the format."""
    place = entries.index(entry)
    parent = next((one for one in entries if place in one.children), None)
    right = NOBODY
    if parent:
        brothers = _in_order(entries, parent)
        after = brothers.index(place) + 1
        right = brothers[after] if after < len(brothers) else NOBODY
    child = _in_order(entries, entry)[0] if entry.children else NOBODY
    name = entry.name.encode("utf-16-le") + b"\0\0"
    return (
        name.ljust(64, b"\0")
        + len(name).to_bytes(2, "little")
        + bytes([entry.kind, 1])
        + _numbers([NOBODY, right, child])
        + bytes(36)
        + _numbers([entry.start if entry.size else (0 if entry.kind == 1 else END), entry.size, 0])
    )


def _in_order(entries: list[_Entry], parent: _Entry) -> list[int]:
    return sorted(parent.children, key=lambda place: (len(entries[place].name), entries[place].name.upper()))


def _numbers(numbers: list[int]) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)
