"""What a run says, on its way to its readers: merged, numbered, committed, then published. Never in another order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from recto.config.run_settings import RecorderSettings
from recto.conversation.events import CallSaid, Event, ReasoningSaid, TextSaid, encode_event, merge
from recto.engine.hub import Hub
from recto.store.ports import Lease, Recorded, RunChange, StoredEvent
from recto.store.store import Store

NOTHING_ELSE = RunChange()
# What counts for an event that has no words: thousands of them are work too.
EVENT_CHARACTERS = 64


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
        self._flushing: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
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
            # Whoever breaks this off must not break off the commit.
            await asyncio.shield(self._flushing)

    def mention(self, event: Event) -> None:
        """Say this when there is time. Where something stood in the way, whoever speaks next is told."""
        if not self._failure:
            self._pending.append(event)
            self._plan()

    async def write(self, change: RunChange, events: Sequence[Event] = ()) -> Recorded:
        """Commit a change, with all that was said before it and these events, as one. Then readers get them."""
        async with self._turn:
            return await self._commit(change, events)

    async def _commit(self, change: RunChange, events: Sequence[Event]) -> Recorded:
        if self._failure:
            raise self._failure
        said = merge((*self._pending, *events))
        self._pending, self._waiting = [], 0
        self._stop_timer()
        # Copies: what the encoder returns keeps the page of memory it was written in, and readers' tails keep these.
        bodies = [bytes(memoryview(body)) for event in said for body in encode_event(event)]
        if change is NOTHING_ELSE:
            written = await self._store.add_events(self._lease, bodies)
        else:
            written = await self._store.record(self._lease, replace(change, events=bodies), self._clock())
        self.outcome = change.ending.outcome if change.ending else self.outcome
        if any(isinstance(event, (TextSaid, ReasoningSaid, CallSaid)) for event in said):
            self._last = self._loop.time()
        first = written.last_event - len(bodies) + 1
        stored = [StoredEvent(number=first + place, body=body) for place, body in enumerate(bodies)]
        self._hub.publish(self._lease.run, stored)
        return written

    async def close(self) -> None:
        """Say no more. What was not committed was never said."""
        self._stop_timer()
        if self._flushing:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)

    def _plan(self) -> None:
        if self._flushing or (self._timer and self._waiting < self._settings.characters):
            return
        self._stop_timer()
        due = self._last + self._settings.interval - self._loop.time()
        if due <= 0 or self._waiting >= self._settings.characters:
            self._flush_now()
        else:
            self._timer = self._loop.call_later(due, self._flush_now)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _flush_now(self) -> None:
        self._timer = None
        self._flushing = self._loop.create_task(self._flush())

    async def _flush(self) -> None:
        try:
            async with self._turn:
                if self._pending:
                    await self._commit(NOTHING_ELSE, ())
        except Exception as error:  # whoever says or writes next is told
            self._failure = error
        finally:
            self._flushing = None
        if self._pending and not self._failure:
            self._plan()


def _characters(event: Event) -> int:
    return len(event.delta) if isinstance(event, (TextSaid, ReasoningSaid, CallSaid)) else EVENT_CHARACTERS
