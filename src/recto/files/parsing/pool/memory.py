"""How much memory processes take, as Linux counts it. Nothing is held to anything here."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
# Places in `statm`, which counts pages.
_RESIDENT, _PRIVATE = 1, 5


def private_bytes() -> int:
    """The bytes that this process has for itself, used or not: what its limit is on; 0 where that is not known."""
    return _counted(_PROCESSES / "self", _PRIVATE)


def resident_bytes(pid: int) -> int:
    """The bytes in memory of a process and of all it started; 0 where that is not known."""
    folder = _PROCESSES / str(pid)
    below = 0
    with suppress(OSError):
        lists = [path.read_text(encoding="ascii") for path in folder.glob("task/*/children")]
        below = sum(resident_bytes(int(child)) for listed in lists for child in listed.split())
    return _counted(folder, _RESIDENT) + below


def _counted(folder: Path, place: int) -> int:
    with suppress(OSError):
        return int((folder / "statm").read_text(encoding="ascii").split()[place]) * os.sysconf("SC_PAGESIZE")
    return 0
