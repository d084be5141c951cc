"""How long a server stands still for others while something costly goes on, and the memory that takes."""

from __future__ import annotations

import http.client
import os
import threading
import time
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

PAUSE = 0.005
TICKS = os.sysconf("SC_CLK_TCK")


class HealthProbe:
    """Asks `/healthz` again and again while it is entered; `standstill` is the longest it was waited for an answer.

    An answer that is late because the machine is busy with others is no standstill: only what the server itself worked
    meanwhile counts.
    """

    def __init__(self, url: str, pid: int) -> None:
        self._address = urlsplit(url).netloc
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="health-probe", daemon=True)
        self._resident = 0.0
        self.standstill = 0.0
        self.asked = 0

    def __enter__(self) -> Self:
        self._resident = resident_megabytes(self._pid)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def grown(self) -> float:
        """Megabytes of memory the server has more than when this was entered."""
        return resident_megabytes(self._pid) - self._resident

    def _ask(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        while not self._stop.wait(PAUSE):
            worked, began = _worked(self._pid), time.monotonic()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            waited = min(time.monotonic() - began, _worked(self._pid) - worked)
            self.standstill, self.asked = max(self.standstill, waited), self.asked + 1
        connection.close()


def resident_megabytes(pid: int) -> float:
    """The memory a process has now."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def _worked(pid: int) -> float:
    """Seconds of processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
