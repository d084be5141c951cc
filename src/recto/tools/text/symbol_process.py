"""Symbols found by a process of its own, which stays for the next source. It never outlives this one.

A text can be made that a grammar takes minutes for, and nothing stops a parser that is at it but the end of its
process.
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

# Of a busy machine; and how long the process stays that nobody asks.
START_SECONDS, IDLE_SECONDS = 30, 600

# Two that ask first, at the same time, get the same process.
_choosing = Lock()


def find_symbols(source: bytes, name: str, limits: FileToolSettings = FileToolSettings()) -> tuple[Symbol, ...]:  # noqa: B008 - it is frozen
    """The symbols of a source in UTF-8, by its file's name. It blocks while a process reads it, a while at most.

    None where its language is not known, where it is too long, and where that process did not manage.
    """
    ending = name.rpartition(".")[2].lower()
    if ending not in BY_ENDING or len(source) > limits.symbol_bytes:
        return ()
    with _choosing:
        process = _process(limits.symbol_memory_bytes)
    return process.find(source, ending, limits.symbol_seconds)


@cache
def _process(memory_bytes: int) -> SymbolProcess:
    process = SymbolProcess(memory_bytes)
    atexit.register(process.end)
    return process


class SymbolProcess:
    """A process that finds symbols, started when it is needed. It is asked for one source at a time."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    @property
    def pid(self) -> int | None:
        """The number of the process, while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def find(self, source: bytes, ending: str, seconds: float) -> tuple[Symbol, ...]:
        """The symbols of a source. None where its turn does not come, or it is not done, within so many seconds."""
        if not self._lock.acquire(timeout=seconds):
            return ()
        try:
            return _read(self._answer(b"%s %d %d\n%s" % (ending.encode(), len(source), seconds, source), seconds))
        finally:
            self._lock.release()

    def _answer(self, request: bytes, seconds: float) -> bytes:
        was_running, begin = self.pid is not None, time.monotonic()
        answer = self._ask(request, seconds)
        # It may have ended since it was asked last, which is no fault of this source.
        if not answer and was_running and time.monotonic() - begin < seconds:
            return self._ask(request, seconds)
        return answer

    def _ask(self, request: bytes, seconds: float) -> bytes:
        """The answer, a line; empty where there is none in time. Then the process is ended."""
        answer = b""
        with suppress(OSError):
            answer = _told(self._started(), request, seconds)
        if answer.endswith(b"\n"):
            return answer
        # One that is dying has closed its pipes a moment before it counts as ended.
        self.end()
        return b""

    def end(self) -> None:
        """Kill the process, if there is one. Whoever asks again starts another."""
        if self._process:
            self._process.kill()
            # What was not written any more stays so.
            with suppress(OSError), self._process:
                pass

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            # Its pipes are closed now, not when somebody finds them left.
            self.end()
            # Where libraries are is all it may know of this process.
            libraries = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}
            command = [sys.executable, "-I", symbols.__file__, str(self._memory_bytes), str(IDLE_SECONDS)]
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            # The words are our own; sources are what it reads.
            self._process = subprocess.Popen(  # noqa: S603 - as said
                command, stdin=pipe, stdout=pipe, stderr=nowhere, env=libraries, process_group=0
            )
            # Its first line says that it is ready.
            _told(self._process, b"", START_SECONDS)
        return self._process


def _told(process: subprocess.Popen[bytes], request: bytes, seconds: float) -> bytes:
    """The next line it says; what takes longer is killed, and says nothing more."""
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


def _read(answer: bytes) -> tuple[Symbol, ...]:
    rows = cast("list[list[str | int]]", json.loads(answer or b"[]"))
    fields, make = Symbol.__dataclass_fields__, cast("Callable[..., Symbol]", Symbol)
    return tuple([make(**dict(zip(fields, row, strict=True))) for row in rows])
