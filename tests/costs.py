"""What an attack costs a server and everybody else: standstill, and memory of the server and of its children."""

import http.client
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

MEBIBYTE = 2**20
# What everybody else may notice of whatever one client does, in seconds.
STANDSTILL = 0.25
ATTEMPTS = 3
PAUSE = 0.005
TICKS = os.sysconf("SC_CLK_TCK")
_RESIDENT = re.compile(r"VmRSS:\s+(\d+) kB")


class Running(Protocol):
    @property
    def url(self) -> str: ...
    @property
    def pid(self) -> int: ...


@dataclass
class Costs:
    """Seconds of standstill, and bytes: the most on top at any time, what is kept at the end, the most of a child."""

    standstill: float = float("inf")
    peak: int = 0
    kept: int = 0
    child: int = 0
    answered: int = field(default=0, compare=False)


def costs_of(server: Running, attack: Callable[[], object]) -> Costs:
    """What an attack costs. Where others waited long it is tried again: a busy machine adds to that, and not always.

    Memory counts from before the first try: what a first one leaves behind is not hidden from the others.
    """
    costs, before = Costs(), resident(server.pid)
    for _ in range(ATTEMPTS):
        costs.standstill = min(costs.standstill, _attempt(server, attack, costs, before))
        if costs.standstill < STANDSTILL:
            break
    costs.kept = resident(server.pid) - before
    return costs


def _attempt(server: Running, attack: Callable[[], object], costs: Costs, before: int) -> float:
    is_over, waits = threading.Event(), list[float]()
    looking = [
        threading.Thread(target=_ask_health, args=(server, is_over, waits), daemon=True),
        threading.Thread(target=_look_at_memory, args=(server.pid, is_over, costs, before), daemon=True),
    ]
    for thread in looking:
        thread.start()
    try:
        attack()
    finally:
        is_over.set()
        for thread in looking:
            thread.join()
    costs.answered += len(waits)
    return max(waits, default=float("inf"))


def _ask_health(server: Running, is_over: threading.Event, waits: list[float]) -> None:
    """How long each answer took: by the clock, or less where the server did not even work as long."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60, source_address=("127.0.0.2", 0))
    try:
        # Once at least: some attacks are over at once.
        while not waits or not is_over.wait(PAUSE):
            work, begun = worked(server.pid), time.monotonic()
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
            waits.append(min(time.monotonic() - begun, worked(server.pid) - work))
    except (OSError, http.client.HTTPException):
        waits.append(float("inf"))
    finally:
        connection.close()


def _look_at_memory(pid: int, is_over: threading.Event, costs: Costs, before: int) -> None:
    while not is_over.wait(PAUSE):
        costs.peak = max(costs.peak, resident(pid) - before)
        for child in _children_of(pid):
            # One that is about to be started is for a moment as large as the server.
            if _command_of(child) != _command_of(pid):
                costs.child = max(costs.child, _resident_tree(child))


def worked(pid: int) -> float:
    """Seconds a process has been at work."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident(pid: int) -> int:
    """The bytes of a process that are in memory; none once it is gone."""
    with suppress(OSError):
        found = _RESIDENT.search(Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace"))
        return int(found[1]) * 1_024 if found else 0
    return 0


def _resident_tree(pid: int) -> int:
    """The same of a process and all below it."""
    return resident(pid) + sum(map(_resident_tree, _children_of(pid)))


def _children_of(pid: int) -> list[int]:
    with suppress(OSError):
        lists = [path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(child) for listed in lists for child in listed.split()]
    return []


def _command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
