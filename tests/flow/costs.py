"""What clients cost a server while a test looks: memory of the server and of each of its children, and standstill."""

import re
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from recto.testing.probe import HealthProbe
from tests.flow.world import ServerHere

MEBIBYTE = 2**20
LOOK_SECONDS = 0.01
_RESIDENT = re.compile(r"VmRSS:\s+(\d+) kB")


class Costs:
    """The most that was seen from its beginning to its end: bytes that came on top, bytes of a child, seconds."""

    def __init__(self, server: ServerHere) -> None:
        self.server_bytes = 0
        self.child_bytes = 0
        self._server = server
        self._is_over = threading.Event()
        self._probe = HealthProbe(server.url, server.pid)
        self._looking = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._before = resident(self._server.pid)
        self._probe.__enter__()
        self._looking.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._is_over.set()
        self._looking.join()
        self._probe.__exit__()

    @property
    def standstill(self) -> float:
        return self._probe.standstill

    def _look(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            self.server_bytes = max(self.server_bytes, resident(self._server.pid) - self._before)
            for child in children_of(self._server.pid):
                # One that is about to be started is for a moment as large as the server.
                if command_of(child) != command_of(self._server.pid):
                    self.child_bytes = max(self.child_bytes, resident_tree(child))


def resident(pid: int) -> int:
    """The bytes of a process that are in memory; none once it is gone."""
    with suppress(OSError):
        found = _RESIDENT.search(Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace"))
        return int(found[1]) * 1_024 if found else 0
    return 0


def resident_tree(pid: int) -> int:
    """The same of a process and all below it."""
    return resident(pid) + sum(map(resident_tree, children_of(pid)))


def children_of(pid: int) -> list[int]:
    with suppress(OSError):
        lists = [path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(child) for listed in lists for child in listed.split()]
    return []


def command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
