"""Events of a run on their way to readers: always merged, numbered, committed, then published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from recto.config.run_settings import RecorderSettings
from recto.conversation.events import Event, ReasoningContent, TextContent, ToolCallArguments, encode_event, merge
from recto.engine.hub import Hub
from recto.errors import StoreDown
from recto.store.ports import Lease, RecordResult, RunChange, StoredEvent
from recto.store.store import Store

DELTAS = (TextContent, ReasoningContent, ToolCallArguments)
# Characters that an event without text counts for, because thousands of such events are work too.
EVENT_CHARACTERS = 64
STOPPING = "it is being closed"


class Recorder:
    """Writer for one run, under its lease. `outcome` is the outcome of the run; None before its end."""

    def __init__(
        self, store: Store, hub: Hub, lease: Lease, *, clock: Callable[[], datetime], settings: RecorderSettings
    ) -> None:
        self._store = store
        self._hub = hub
        self._lease = lease
        self._clock = clock
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._pending: list[Event] = []
        self._pending_characters = 0
        self._last_text = -1e9
        self._timer: asyncio.TimerHandle | None = None
        # The write of pending text in progress. It has no task of its own, because most writes of a server are text.
        self._flushing: asyncio.Future[RecordResult] | None = None
        self._failure: BaseException | None = None
        self.run = lease.run
        self.outcome: str | None = None

    async def emit(self, events: Sequence[Event]) -> None:
        """Publish events soon. Raise the error that stopped earlier events."""
        if self._failure:
            raise self._failure
        self._pending += events
        for event in events:
            is_text = isinstance(event, (TextContent, ReasoningContent, ToolCallArguments))
            self._pending_characters += len(event.delta) if is_text else EVENT_CHARACTERS
        self._schedule()
        if self._pending_characters > self._settings.most and self._flushing:
            # asyncio.wait leaves the commit running if the caller is cancelled.
            await asyncio.wait((self._flushing,))

    def emit_soon(self, event: Event) -> None:
        """Publish an event with the next write. If that fails, the next caller of `emit` or `write` gets the error."""
        if not self._failure:
            self._pending.append(event)
            self._schedule()

    async def write(self, change: RunChange, events: Sequence[Event] = ()) -> RecordResult:
        """Commit a change with all pending events and these, in one transaction, then publish the events."""
        try:
            async with self._lock:
                if self._flushing:
                    await asyncio.wait((self._flushing,))
                if self._failure:
                    raise self._failure
                merged_events, bodies = self._take_pending(events)
                result = await self._store.runs.record(self._lease, replace(change, events=bodies), self._clock())
                self.outcome = change.ending.outcome if change.ending else self.outcome
                self._publish(merged_events, bodies, result)
                return result
        finally:
            self._schedule()

    def _take_pending(self, events: Sequence[Event] = ()) -> tuple[list[Event], list[bytes]]:
        """Remove the pending events. Merge them with more events, and return the events and their bytes."""
        merged_events = merge((*self._pending, *events))
        self._pending, self._pending_characters = [], 0
        self._stop_timer()
        # Copy the bytes: the encoder's objects would retain its whole buffer while the hub holds recent events.
        return merged_events, [bytes(memoryview(body)) for event in merged_events for body in encode_event(event)]

    def _publish(self, events: Sequence[Event], bodies: Sequence[bytes], result: RecordResult) -> None:
        if any(isinstance(event, DELTAS) for event in events):
            self._last_text = self._loop.time()
        first = result.last_event - len(bodies) + 1
        rows = [StoredEvent(number=first + place, body=body) for place, body in enumerate(bodies)]
        self._hub.publish(self._lease.run, rows)

    async def close(self) -> None:
        """Stop. Drop pending events that were not committed."""
        self._stop_timer()
        self._pending = []
        if self._flushing:
            await asyncio.wait((self._flushing,))

    def _schedule(self) -> None:
        is_scheduled = self._timer and self._pending_characters < self._settings.characters
        if not self._pending or self._failure or self._flushing or is_scheduled or self._lock.locked():
            # A write in progress includes the pending events and schedules a write for later ones.
            return
        self._stop_timer()
        due = self._last_text + self._settings.interval - self._loop.time()
        if due <= 0 or self._pending_characters >= self._settings.characters:
            self._flush()
        else:
            self._timer = self._loop.call_later(due, self._flush)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> None:
        events, bodies = self._take_pending()
        self._flushing = self._store.events.add(self._lease, bodies)
        self._flushing.add_done_callback(partial(self._finish_flush, events, bodies))

    def _finish_flush(
        self, events: Sequence[Event], bodies: Sequence[bytes], flushing: asyncio.Future[RecordResult]
    ) -> None:
        self._flushing = None
        # The next caller of `emit` or `write` gets the error.
        self._failure = StoreDown(problem=STOPPING) if flushing.cancelled() else flushing.exception()
        if not self._failure:
            self._publish(events, bodies, flushing.result())
            self._schedule()
