"""Costs of an attack: CPU seconds a server works before it answers somebody else; memory of it and of its children."""

import http.client
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

MEBIBYTE = 2**20
ATTEMPTS = 3
PAUSE_SECONDS = 0.005
TICKS = os.sysconf("SC_CLK_TCK")
_RESIDENT = re.compile(r"VmRSS:\s+(\d+) kB")


def standstill_limit() -> float:
    """Return the CPU seconds that one client may cost another: 0.25, more on a slow or busy machine."""
    start = time.thread_time()
    assert sum(number % 7 for number in range(1_000_000))
    return max(0.25, 4 * (time.thread_time() - start))


class Running(Protocol):
    @property
    def url(self) -> str: ...
    @property
    def pid(self) -> int: ...


@dataclass
class Costs:
    """CPU seconds of standstill; bytes at the peak, at the end, and of the largest child."""

    standstill: float = float("inf")
    peak: int = 0
    memory: int = 0
    child: int = 0


def costs_of(server: Running, attack: Callable[[], object]) -> Costs:
    """Measure an attack. Repeat it if others waited long, because a busy machine adds to that."""
    costs, before = Costs(), resident(server.pid)
    for _ in range(ATTEMPTS):
        is_over, work = threading.Event(), list[float]()
        watching = threading.Thread(target=_watch, args=(server, is_over, work, costs, before), daemon=True)
        watching.start()
        try:
            attack()
        finally:
            is_over.set()
            watching.join()
        costs.standstill = min(costs.standstill, max(work))
        if costs.standstill < standstill_limit():
            break
    costs.memory = resident(server.pid) - before
    return costs


def _watch(server: Running, is_over: threading.Event, work: list[float], costs: Costs, before: int) -> None:
    """Request the health all the time. Record the CPU time until each answer, and the memory."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60, source_address=("127.0.0.2", 0))
    try:
        # Once at least: some attacks are over at once.
        while not work or not is_over.wait(PAUSE_SECONDS):
            start = worked(server.pid)
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
            work.append(worked(server.pid) - start)
            costs.peak = max(costs.peak, resident(server.pid) - before)
            # A child that is about to be started is for a moment as large as the server.
            started = [child for child in _children_of(server.pid) if _command_of(child) != _command_of(server.pid)]
            costs.child = max([costs.child, *map(_resident_tree, started)])
    except (OSError, http.client.HTTPException):
        work.append(float("inf"))
    finally:
        connection.close()


def worked(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def open_sockets(pid: int) -> int:
    links = list[str]()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            links.append(str(path.readlink()))
    return sum(link.startswith("socket:") for link in links)


def resident(pid: int) -> int:
    """Return the bytes of a process in memory, 0 once it has ended."""
    with suppress(OSError):
        match = _RESIDENT.search(Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace"))
        return int(match[1]) * 1_024 if match else 0
    return 0


def _resident_tree(pid: int) -> int:
    return resident(pid) + sum(map(_resident_tree, _children_of(pid)))


def _children_of(pid: int) -> list[int]:
    with suppress(OSError):
        lists = [path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(child) for line in lists for child in line.split()]
    return []


def _command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
