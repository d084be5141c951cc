"""What a run says, on its way to its readers: merged, numbered, committed, then published. Never in another order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from recto.config.run_settings import RecorderSettings
from recto.conversation.events import CallSaid, Event, ReasoningSaid, TextSaid, encode_event, merge
from recto.engine.hub import Hub
from recto.errors import StoreDown
from recto.store.ports import Lease, RecordResult, RunChange, StoredEvent
from recto.store.store import Store

# What counts for an event that has no words: thousands of them are work too.
EVENT_CHARACTERS = 64
STOPPING = "it is being closed"


class Recorder:
    """Writes for one run, under its lease. `outcome` is how it ended, once it has."""

    def __init__(
        self, store: Store, hub: Hub, lease: Lease, *, clock: Callable[[], datetime], settings: RecorderSettings
    ) -> None:
        self._store = store
        self._hub = hub
        self._lease = lease
        self._clock = clock
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        self._pending: list[Event] = []
        self._waiting = 0
        self._last = -1e9
        self._timer: asyncio.TimerHandle | None = None
        # Words on their way into the store, without a task of their own: most of what a server writes are words.
        self._flushing: asyncio.Future[RecordResult] | None = None
        self._failure: BaseException | None = None
        self.run = lease.run
        self.outcome: str | None = None

    async def say(self, events: Sequence[Event]) -> None:
        """Say this soon. Raises what stood in the way of what was said before."""
        if self._failure:
            raise self._failure
        self._pending += events
        self._waiting += sum(map(_characters, events))
        self._plan()
        if self._waiting > self._settings.most and self._flushing:
            # Not awaited itself: whoever breaks this off must not break off the commit.
            await asyncio.wait((self._flushing,))

    def mention(self, event: Event) -> None:
        """Say this when there is time. Where something stood in the way, whoever speaks next is told."""
        if not self._failure:
            self._pending.append(event)
            self._plan()

    async def write(self, change: RunChange, events: Sequence[Event] = ()) -> RecordResult:
        """Commit a change, with all that was said before it and these events, as one. Then readers get them."""
        try:
            async with self._turn:
                return await self._commit(change, events)
        finally:
            self._plan()

    async def _commit(self, change: RunChange, events: Sequence[Event]) -> RecordResult:
        if self._flushing:
            await asyncio.wait((self._flushing,))
        if self._failure:
            raise self._failure
        said, bodies = self._take(events)
        written = await self._store.record(self._lease, replace(change, events=bodies), self._clock())
        self.outcome = change.ending.outcome if change.ending else self.outcome
        self._publish(said, bodies, written)
        return written

    def _take(self, events: Sequence[Event] = ()) -> tuple[list[Event], list[bytes]]:
        """What is to be said now, and its bytes."""
        said = merge((*self._pending, *events))
        self._pending, self._waiting = [], 0
        self._stop_timer()
        # Copies: what the encoder returns keeps the page of memory it was written in, and readers' tails keep these.
        return said, [bytes(memoryview(body)) for event in said for body in encode_event(event)]

    def _publish(self, said: Sequence[Event], bodies: Sequence[bytes], written: RecordResult) -> None:
        if any(isinstance(event, (TextSaid, ReasoningSaid, CallSaid)) for event in said):
            self._last = self._loop.time()
        first = written.last_event - len(bodies) + 1
        stored = [StoredEvent(number=first + place, body=body) for place, body in enumerate(bodies)]
        self._hub.publish(self._lease.run, stored)

    async def close(self) -> None:
        """Say no more. What was not committed was never said."""
        self._stop_timer()
        self._pending = []
        if self._flushing:
            await asyncio.wait((self._flushing,))

    def _plan(self) -> None:
        is_planned = self._timer and self._waiting < self._settings.characters
        if not self._pending or self._failure or self._flushing or is_planned or self._turn.locked():
            # Whoever writes takes along what is pending, and plans again when it is done.
            return
        self._stop_timer()
        due = self._last + self._settings.interval - self._loop.time()
        if due <= 0 or self._waiting >= self._settings.characters:
            self._flush()
        else:
            self._timer = self._loop.call_later(due, self._flush)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> None:
        said, bodies = self._take()
        self._flushing = self._store.add_events(self._lease, bodies)
        self._flushing.add_done_callback(partial(self._flushed, said, bodies))

    def _flushed(self, said: Sequence[Event], bodies: Sequence[bytes], flushed: asyncio.Future[RecordResult]) -> None:
        self._flushing = None
        # Whoever says or writes next is told.
        self._failure = StoreDown(problem=STOPPING) if flushed.cancelled() else flushed.exception()
        if not self._failure:
            self._publish(said, bodies, flushed.result())
            self._plan()


def _characters(event: Event) -> int:
    return len(event.delta) if isinstance(event, (TextSaid, ReasoningSaid, CallSaid)) else EVENT_CHARACTERS
