"""Symbol search in a separate process that is reused.

A crafted text can keep a grammar busy for minutes, and only ending the process stops it.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock, Timer
from typing import IO, cast

from recto.config.run_settings import FileToolSettings
from recto.tools.text import symbols
from recto.tools.text.symbols import BY_ENDING, Symbol

# Start timeout, long enough for a busy machine, and idle time after which the process ends.
START_SECONDS, IDLE_SECONDS = 30, 600

# Lock for the creation of the process, so that concurrent first callers share one.
_start_lock = Lock()


def find_symbols(source: bytes, name: str, limits: FileToolSettings = FileToolSettings()) -> tuple[Symbol, ...]:  # noqa: B008 - it is frozen
    """Return the symbols of a UTF-8 source by its file name. Blocks until the process answers.

    Returns () if the language is unknown, the source is too long, or the process fails.
    """
    ending = name.rpartition(".")[2].lower()
    if ending not in BY_ENDING or len(source) > limits.symbol_bytes:
        return ()
    with _start_lock:
        process = _process(limits.symbol_memory_bytes)
    return process.find(source, ending, limits.symbol_seconds)


@cache
def _process(memory_bytes: int) -> SymbolProcess:
    process = SymbolProcess(memory_bytes)
    atexit.register(process.end)
    return process


class SymbolProcess:
    """A process that finds symbols in one source at a time. It starts on demand."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    @property
    def pid(self) -> int | None:
        """The id of the process while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def find(self, source: bytes, ending: str, seconds: float) -> tuple[Symbol, ...]:
        """Return the symbols of a source, or () if there is no answer within `seconds`, which include the wait for
        other callers.
        """
        if not self._lock.acquire(timeout=seconds):
            return ()
        try:
            request = b"%s %d %d\n%s" % (ending.encode(), len(source), seconds, source)
            was_running, begin = self.pid is not None, time.monotonic()
            answer = self._ask(request, seconds)
            # Retry once, because the process may have ended since the last request.
            if not answer and was_running and time.monotonic() - begin < seconds:
                answer = self._ask(request, seconds)
            rows = cast("list[list[str | int]]", json.loads(answer or b"[]"))
            fields, make = Symbol.__dataclass_fields__, cast("Callable[..., Symbol]", Symbol)
            return tuple([make(**dict(zip(fields, row, strict=True))) for row in rows])
        finally:
            self._lock.release()

    def _ask(self, request: bytes, seconds: float) -> bytes:
        """Return the answer line. If none arrives in time, end the process and return nothing."""
        answer = b""
        with suppress(OSError):
            answer = _request_line(self._start(), request, seconds)
        if answer.endswith(b"\n"):
            return answer
        # End the process explicitly: a dying one closes its pipes a moment before it counts as ended.
        self.end()
        return b""

    def end(self) -> None:
        """Kill the process, if any. The next request starts another."""
        if self._process:
            self._process.kill()
            # Ignore the error of flushing an unfinished request.
            with suppress(OSError), self._process:
                pass

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            # Close its pipes now, not at garbage collection.
            self.end()
            # The process inherits only the library path.
            libraries = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}
            command = [sys.executable, "-I", symbols.__file__, str(self._memory_bytes), str(IDLE_SECONDS)]
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            # The command contains no outside input. Sources go through stdin.
            self._process = subprocess.Popen(  # noqa: S603 - as said
                command, stdin=pipe, stdout=pipe, stderr=nowhere, env=libraries, process_group=0
            )
            # Wait for the first line, which means that the process is ready.
            _request_line(self._process, b"", START_SECONDS)
        return self._process


def _request_line(process: subprocess.Popen[bytes], request: bytes, seconds: float) -> bytes:
    """Send a request and return the next output line. Kill the process if that takes longer than `seconds`."""
    killer = Timer(seconds, process.kill)
    killer.daemon = True
    killer.start()
    try:
        stdin, stdout = cast("tuple[IO[bytes], IO[bytes]]", (process.stdin, process.stdout))
        with suppress(OSError):
            stdin.write(request)
            stdin.flush()
            return stdout.readline()
        return b""
    finally:
        killer.cancel()
