"""Descendants of a process and their memory, from Linux's /proc. Elsewhere only the process itself is known."""

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
    """Return a process and its descendants, at most one more than `most`."""
    found, place = [pid], 0
    while place < len(found) <= most:
        found += _children(found[place])
        place += 1
    return found


def _children(pid: int) -> Sequence[int]:
    below = list[int]()
    # A process that is gone has no children: they were moved to another parent or ended.
    with suppress(OSError):
        for thread in (_PROCESSES / str(pid) / "task").iterdir():
            below += map(int, (thread / "children").read_bytes().split())
    return below


def memory_of(pids: Sequence[int], most: int) -> int:
    """Return the memory of processes in bytes. Shared memory is counted once if the sum would exceed `most`."""
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
