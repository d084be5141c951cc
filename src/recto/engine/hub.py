"""Delivery of events to readers in one process. Memory wakes the readers; the store has the events that memory dropped.

A reader's state is one number: its last event. A slow reader costs one small page of events and blocks nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from recto.config.run_settings import HubSettings
from recto.conversation.events import ends_run
from recto.store.ports import EventSource, StoredEvent


class Notifier:
    """Wake-up of one waiter. Cheaper than `asyncio.Event`, which looks up the loop on each wait and keeps a queue."""

    __slots__ = ("_is_set", "_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def clear(self) -> None:
        """Forget earlier notifications."""
        self._is_set = False

    def notify(self) -> None:
        """Wake the current or the next waiter."""
        self._is_set = True
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Wait for a wake-up. Return at once if there was one since `clear`."""
        if not self._is_set:
            self._waiter = self._loop.create_future()
            await self._waiter


class Listener:
    """A reader of a run and the notifier that wakes it."""

    def __init__(self, run: str, started_at: float, notifier: Notifier) -> None:
        self.run = run
        self.last_event_at = started_at
        self.notifier = notifier
        # True if the store may have events that this listener did not get.
        self.must_query = True


@dataclass(kw_only=True)
class _Channel:
    """The newest events of a run, its listeners here, and the number of its writers here."""

    tail: deque[StoredEvent] = field(default_factory=deque["StoredEvent"])
    size: int = 0
    listeners: set[Listener] = field(default_factory=set["Listener"])
    writers: int = 0


class Hub:
    """Publisher of committed events to listeners."""

    def __init__(self, events: EventSource, settings: HubSettings | None = None) -> None:
        self._events = events
        self._settings = settings or HubSettings()
        self._channels: dict[str, _Channel] = {}
        self._closed = False
        self._is_ticking = False

    @contextmanager
    def open_writer(self, run: str) -> Generator[None]:
        """Mark a run as written in this process, so that its listeners do not poll the store."""
        channel = self._channel(run)
        channel.writers += 1
        try:
            yield
        finally:
            channel.writers -= 1
            self._notify(channel)
            self._discard_if_unused(run)

    def publish(self, run: str, events: Sequence[StoredEvent]) -> None:
        """Publish committed events, in order."""
        channel = self._channels.get(run)
        if channel is not None and events:
            if channel.tail and channel.tail[-1].number + 1 != events[0].number:
                # Events in between were committed but never published. The store has them; the tail must not skip them.
                channel.tail.clear()
                channel.size = 0
            channel.tail.extend(events)
            channel.size += sum([len(event.body) for event in events])
            limits = self._settings
            # Keep the newest event whatever its size: listeners detect by it that the store has more.
            while len(channel.tail) > 1 and (len(channel.tail) > limits.tail or channel.size > limits.bytes):
                channel.size -= len(channel.tail.popleft().body)
            self._notify(channel)

    @contextmanager
    def open_listener(self, run: str) -> Generator[Listener]:
        """Listen to a run. A listener that starts before the run is admitted misses nothing."""
        listener = Listener(run=run, started_at=self._now(), notifier=Notifier(self._loop))
        channel = self._channel(run)
        channel.listeners.add(listener)
        if not self._is_ticking:
            self._tick()
        try:
            yield listener
        finally:
            channel.listeners.discard(listener)
            self._discard_if_unused(run)

    async def follow(self, run: str, after: int, *, last: int | None) -> AsyncGenerator[Sequence[StoredEvent]]:
        """Yield events after a number until the run ends, and an empty sequence as heartbeat.

        `last` is the number of the last event of a run that has already ended.
        """
        with self.open_listener(run) as listener:
            async for events in self.follow_listener(listener, after, last=last):
                yield events

    async def follow_listener(
        self, listener: Listener, after: int, *, last: int | None = None, is_new: bool = False
    ) -> AsyncGenerator[Sequence[StoredEvent]]:
        """Yield events like `follow`, for an existing listener.

        With `is_new`, the store has no events yet, so the listener does not query it first.
        """
        listener.must_query = not is_new
        while not self._closed and (last is None or after < last):
            listener.notifier.clear()
            events = await self._read_next(listener, after)
            if not events and last is not None:
                # All events of an ended run are in the store, or were cleaned up.
                events = await self._read_stored(listener.run, after)
                if not events:
                    return
            if events:
                after, listener.last_event_at = events[-1].number, self._now()
                yield events
                if ends_run(events[-1].body):
                    return
                continue
            await listener.notifier.wait()
            if self._now() - listener.last_event_at >= self._settings.heartbeat:
                listener.last_event_at = self._now()
                # A deleted run sends no more events, not even its end.
                if not await self._events.has_run(listener.run):
                    return
                yield ()

    def close(self) -> None:
        """End all streams. Clients reconnect to another process."""
        self._closed = True
        for channel in self._channels.values():
            self._notify(channel)

    async def _read_next(self, listener: Listener, after: int) -> Sequence[StoredEvent]:
        channel = self._channel(listener.run)
        tail = channel.tail
        # With no writer here, another process may write: ask the store for events after the tail.
        if tail and tail[0].number <= after + 1 and (channel.writers or after < tail[-1].number):
            return list(islice(tail, max(0, after + 1 - tail[0].number), None))
        if not tail and not listener.must_query:
            return ()
        events = await self._read_stored(listener.run, after)
        # There may be more events than one page.
        listener.must_query = bool(events) or not channel.writers
        return events

    async def _read_stored(self, run: str, after: int) -> Sequence[StoredEvent]:
        return await self._events.list_after(run, after, self._settings.page, self._settings.bytes)

    def _tick(self) -> None:
        """Wake silent listeners, and those of runs in other processes, because nothing else wakes them."""
        self._is_ticking = bool(self._channels) and not self._closed
        if not self._is_ticking:
            return
        now = self._now()
        for channel in self._channels.values():
            for listener in channel.listeners:
                listener.must_query = listener.must_query or not channel.writers
                if not channel.writers or now - listener.last_event_at >= self._settings.heartbeat:
                    listener.notifier.notify()
        self._loop.call_later(min(self._settings.look, self._settings.heartbeat), self._tick)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        # Cached: the lookup is a system call, and each delta needs the loop several times.
        return asyncio.get_running_loop()

    def _now(self) -> float:
        return self._loop.time()

    def _channel(self, run: str) -> _Channel:
        return self._channels.setdefault(run, _Channel())

    def _discard_if_unused(self, run: str) -> None:
        channel = self._channels.get(run)
        if channel and not channel.listeners and not channel.writers:
            del self._channels[run]

    def _notify(self, channel: _Channel) -> None:
        for listener in channel.listeners:
            listener.notifier.notify()
