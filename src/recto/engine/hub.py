"""How events reach readers, in one process. Readers are woken from memory; the store has what memory no longer has.

A reader is a number: the last event it has. However slow it is, it costs one small page of events and holds up nobody.
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
from recto.store.ports import Events, StoredEvent


class Bell:
    """Wakes one who waits. An event of asyncio's would ask for the loop with each word, and keeps room for many."""

    __slots__ = ("_is_rung", "_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_rung = False
        self._waiter: asyncio.Future[None] | None = None

    def clear(self) -> None:
        """Forget that it was rung."""
        self._is_rung = False

    def ring(self) -> None:
        """Wake who waits, or will wait."""
        self._is_rung = True
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until it is rung, unless it was."""
        if not self._is_rung:
            self._waiter = self._loop.create_future()
            await self._waiter


class Listener:
    """A reader of a run, and the bell that wakes it."""

    def __init__(self, run: str, heard: float, bell: Bell) -> None:
        self.run = run
        self.heard = heard
        self.bell = bell
        # Whether the store may have what was not heard here.
        self.ask = True


@dataclass(kw_only=True)
class _Channel:
    """A run somebody reads or writes here: its newest events and its readers."""

    tail: deque[StoredEvent] = field(default_factory=deque["StoredEvent"])
    size: int = 0
    listeners: set[Listener] = field(default_factory=set["Listener"])
    writers: int = 0


class Hub:
    """Publishes what is committed to whoever listens."""

    def __init__(self, events: Events, settings: HubSettings | None = None) -> None:
        self._events = events
        self._settings = settings or HubSettings()
        self._channels: dict[str, _Channel] = {}
        self._closed = False
        self._ticking = False

    @contextmanager
    def writing(self, run: str) -> Generator[None]:
        """While a run is worked on here, its readers need not ask the store for what is new."""
        channel = self._channel(run)
        channel.writers += 1
        try:
            yield
        finally:
            channel.writers -= 1
            self._ring(channel)
            self._forget(run)

    def publish(self, run: str, events: Sequence[StoredEvent]) -> None:
        """Hand on events that are committed, in order."""
        channel = self._channels.get(run)
        if channel is not None and events:
            if channel.tail and channel.tail[-1].number + 1 != events[0].number:
                # Something between was committed and never published: the store has it, the tail must not skip it.
                channel.tail.clear()
                channel.size = 0
            channel.tail.extend(events)
            channel.size += sum([len(event.body) for event in events])
            self._shorten(channel)
            self._ring(channel)

    @contextmanager
    def listening(self, run: str) -> Generator[Listener]:
        """Hear of all that is published from now on. Whoever listens before a run is admitted misses nothing."""
        listener = Listener(run=run, heard=self._now(), bell=Bell(self._loop))
        channel = self._channel(run)
        channel.listeners.add(listener)
        if not self._ticking:
            self._tick()
        try:
            yield listener
        finally:
            channel.listeners.discard(listener)
            self._forget(run)

    async def follow(self, run: str, after: int, *, last: int | None) -> AsyncGenerator[Sequence[StoredEvent]]:
        """Events behind a number as they come, until the run ends; nothing for a while yields an empty sequence.

        `last` is the number of the last event there will be, where the run has ended already.
        """
        with self.listening(run) as listener:
            async for events in self.hear(listener, after, last=last):
                yield events

    async def hear(
        self, listener: Listener, after: int, *, last: int | None = None, is_new: bool = False
    ) -> AsyncGenerator[Sequence[StoredEvent]]:
        """As `follow`, for who listens already. Of a new run the store has nothing that was not heard."""
        listener.ask = not is_new
        while not self._closed and (last is None or after < last):
            listener.bell.clear()
            found = await self._next(listener, after)
            if not found and last is not None:
                # All that an ended run said is in the store, or was cleaned away and never comes.
                found = await self._stored(listener.run, after)
                if not found:
                    return
            if found:
                after, listener.heard = found[-1].number, self._now()
                yield found
                if ends_run(found[-1].body):
                    return
                continue
            await listener.bell.wait()
            if self._now() - listener.heard >= self._settings.heartbeat:
                listener.heard = self._now()
                # A run that was deleted says nothing any more, not even that it ended.
                if not await self._events.knows(listener.run):
                    return
                yield ()

    def close(self) -> None:
        """End all streams: readers come back to whoever goes on with their runs."""
        self._closed = True
        for channel in self._channels.values():
            self._ring(channel)

    async def _next(self, listener: Listener, after: int) -> Sequence[StoredEvent]:
        channel = self._channel(listener.run)
        tail = channel.tail
        # Once nobody writes here, somebody elsewhere may: what the tail does not have is asked of the store again.
        if tail and tail[0].number <= after + 1 and (channel.writers or after < tail[-1].number):
            return list(islice(tail, max(0, after + 1 - tail[0].number), None))
        if not tail and not listener.ask:
            return ()
        found = await self._stored(listener.run, after)
        # What was found may not have been all.
        listener.ask = bool(found) or not channel.writers
        return found

    async def _stored(self, run: str, after: int) -> Sequence[StoredEvent]:
        return await self._events.events(run, after, self._settings.page, self._settings.bytes)

    def _tick(self) -> None:
        """Wake who has been silent for long, and who reads a run that is at work elsewhere: nobody else wakes them."""
        self._ticking = bool(self._channels) and not self._closed
        if not self._ticking:
            return
        now = self._now()
        for channel in self._channels.values():
            for listener in channel.listeners:
                listener.ask = listener.ask or not channel.writers
                if not channel.writers or now - listener.heard >= self._settings.heartbeat:
                    listener.bell.ring()
        self._loop.call_later(min(self._settings.look, self._settings.heartbeat), self._tick)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        # Asked for once: each time it is a call of the system, and there are some for each word.
        return asyncio.get_running_loop()

    def _now(self) -> float:
        return self._loop.time()

    def _channel(self, run: str) -> _Channel:
        return self._channels.setdefault(run, _Channel())

    def _shorten(self, channel: _Channel) -> None:
        most = self._settings
        # The newest stays, whatever its size: readers tell by it that the store has more than they have.
        while len(channel.tail) > 1 and (len(channel.tail) > most.tail or channel.size > most.bytes):
            channel.size -= len(channel.tail.popleft().body)

    def _forget(self, run: str) -> None:
        channel = self._channels.get(run)
        if channel and not channel.listeners and not channel.writers:
            del self._channels[run]

    def _ring(self, channel: _Channel) -> None:
        for listener in channel.listeners:
            listener.bell.ring()
