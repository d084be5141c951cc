"""What a process has started, and the memory of it all, as Linux counts it. Elsewhere it is not known, and no more than
the process itself is seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_RESIDENT = 1
_SHARE = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)


def family(pid: int, most: int) -> Sequence[int]:
    """A process and all it has started, up to one more than `most` of them."""
    found, place = [pid], 0
    while place < len(found) <= most:
        found += _children(found[place])
        place += 1
    return found


def _children(pid: int) -> Sequence[int]:
    below = list[int]()
    # One that is gone by now has left none: they have another parent, or end with it.
    with suppress(OSError):
        for thread in (_PROCESSES / str(pid) / "task").iterdir():
            below += map(int, (thread / "children").read_bytes().split())
    return below


def memory_of(pids: Sequence[int], most: int) -> int:
    """The bytes in memory of processes. What they share is counted once where it would be too much otherwise."""
    resident = sum(map(_resident, pids))
    return resident if resident <= most else sum(map(_share, pids))


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int((_PROCESSES / str(pid) / "statm").read_bytes().split()[_RESIDENT]) * os.sysconf("SC_PAGESIZE")
    return 0


def _share(pid: int) -> int:
    with suppress(OSError):
        if found := _SHARE.search((_PROCESSES / str(pid) / "smaps_rollup").read_bytes()):
            return int(found[1]) * 1_024
    return _resident(pid)
