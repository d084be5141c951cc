"""Many open streams at a slow pace: how late a word is, and what the server weighs."""

from __future__ import annotations

import asyncio
import gc
import re
import statistics
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

from processes import Process
from traffic import OK, PATIENCE, Target, Unanswered, request

# A word of the stamped model: microseconds of the clock that all processes share.
STAMP = re.compile(rb"(?<=[ \"])(\d{8,})(?=[ \"])")
# Streams are opened over so many seconds, then left alone for so many before anything is measured. Words that are late
# are waited for so long at the end, or the latest would not be counted.
OPENING, SETTLING, WAIT = 5.0, 2.0, 15.0


@dataclass(frozen=True, kw_only=True)
class Streams:
    """What was seen while all streams were open: milliseconds a word was late, and megabytes."""

    open: int
    words: int
    expected: int
    p50: float
    p99: float
    most: float
    memory_before: float
    memory: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many streams, how many words a second each, and for how long."""

    streams: int
    rate: float
    seconds: float


async def follow(target: Target, server: Process, plan: Plan) -> Streams:
    """Open all streams, then measure for the time. The peak of memory is that of the process's whole life."""
    before, _ = server.memory()
    listeners = list[_Listener]()
    gc.disable()
    for _ in range(plan.streams):
        listeners.append(await _open(target))
        await asyncio.sleep(OPENING / plan.streams)
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*[listener.first for listener in listeners])
    await asyncio.sleep(SETTLING)
    begin = time.monotonic()
    await asyncio.sleep(plan.seconds)
    await _catch_up(listeners, begin + plan.seconds)
    _, peak = server.memory()
    open_still = sum(not listener.is_lost for listener in listeners)
    gc.enable()
    late = sorted(late for each in listeners for late in each.late(begin, begin + plan.seconds))
    for listener in listeners:
        listener.transport.abort()
    centiles = statistics.quantiles(late, n=100)
    return Streams(
        open=open_still,
        words=len(late),
        expected=round(plan.streams * plan.rate * plan.seconds),
        p50=1000 * centiles[49],
        p99=1000 * centiles[98],
        most=1000 * late[-1],
        memory_before=before,
        memory=peak,
    )


async def _catch_up(listeners: Sequence[_Listener], start: float) -> None:
    given_up = time.monotonic() + WAIT
    while time.monotonic() < given_up and not all(listener.newest() >= start for listener in listeners):
        await asyncio.sleep(0.5)


async def _open(target: Target) -> _Listener:
    loop = asyncio.get_running_loop()
    _, listener = await loop.create_connection(lambda: _Listener(target), "127.0.0.1", target.port)
    return listener


class _Listener(asyncio.Protocol):
    """Asks for one run and takes down what comes and when; it is read later."""

    transport: asyncio.Transport

    def __init__(self, target: Target) -> None:
        self._target = target
        self._times = list[float]()
        self._pieces = list[bytes]()
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(request(self._target))

    def data_received(self, data: bytes) -> None:
        self._times.append(time.monotonic())
        self._pieces.append(data)
        if self.first.done():
            return
        if STAMP.search(data):
            self.first.set_result(None)
        elif not self._pieces[0].startswith(OK):
            self.first.set_exception(Unanswered(f"{self._target.name} answered {data[:300]!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if not self.first.done():
            self.first.set_exception(Unanswered(f"{self._target.name} closed the connection ({exc})"))

    def newest(self) -> float:
        """When the last word was sent that has come."""
        stamps = STAMP.findall(self._pieces[-1]) if self._pieces else []
        return int(stamps[-1]) / 1e6 if stamps else 0.0

    def late(self, begin: float, end: float) -> Iterator[float]:
        """Seconds between a word's sending and its coming, of those sent in this time."""
        ends = list(accumulate(len(piece) for piece in self._pieces))
        for match in STAMP.finditer(b"".join(self._pieces)):
            sent_at = int(match[1]) / 1e6
            if begin <= sent_at < end:
                yield self._times[bisect_left(ends, match.end())] - sent_at
