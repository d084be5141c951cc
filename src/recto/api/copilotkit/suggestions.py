"""Suggestions in progress in this process, limited in number and rate per user. A new one replaces the oldest.

A loading chat requests ten and cancels nine of them, so each waits a moment before its model call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeAlias

from recto.agents.agent import Agent
from recto.api.access.rate import Buckets
from recto.config.run_settings import SuggestionSettings
from recto.conversation.events import Event
from recto.conversation.input.suggestion_input import SuggestionInput
from recto.errors import LimitReached, RectoError

LOGGER = logging.getLogger("recto.api")
OFTEN = "You had {most} suggestions within a minute, which is the limit."
_Said: TypeAlias = "asyncio.Queue[Event | None]"


class Suggest(Protocol):
    """A model call that emits events. Cancelling it ends the call."""

    async def __call__(
        self, owner: str, agent: Agent, asked: SuggestionInput, /, *, say: Callable[[Event], None]
    ) -> None: ...


class Suggestions:
    """Generator of suggestions within limits. Without `make` it generates none."""

    def __init__(
        self,
        settings: SuggestionSettings = SuggestionSettings(is_on=False),  # noqa: B008 - it is frozen
        make: Suggest | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._make = make
        self._minute = Buckets(settings.per_minute, ticks)
        self._under_way = dict[str, list[asyncio.Task[None]]]()

    @property
    def is_on(self) -> bool:
        """True if suggestions are generated."""
        return self._settings.is_on and self._make is not None

    def check_rate(self, user: str) -> None:
        """Raise LimitReached if the user has reached the rate limit."""
        if wait := self._minute.wait(user):
            raise LimitReached(OFTEN.format(most=self._settings.per_minute), retry=wait)

    async def events(self, user: str, agent: Agent, asked: SuggestionInput) -> AsyncGenerator[Event]:
        """Yield the events of a suggestion. Closing the generator cancels the model call."""
        if self._make is None or not self.is_on:
            return
        said: _Said = asyncio.Queue()
        make = partial(self._make, user, agent, asked, say=said.put_nowait)
        making = asyncio.create_task(self._work(make, user))
        # Also called if the task is cancelled before it starts.
        making.add_done_callback(lambda _: said.put_nowait(None))
        with self._counted(user, making):
            try:
                while (event := await said.get()) is not None:
                    yield event
            finally:
                _end(making)
                # The usage is stored before the client learns of the end.
                await asyncio.wait([making])

    def stop(self) -> None:
        """Cancel all suggestions at shutdown."""
        for task in [task for tasks in self._under_way.values() for task in tasks]:
            _end(task)

    async def _work(self, make: Callable[[], Awaitable[None]], user: str) -> None:
        try:
            await asyncio.sleep(self._settings.pause)
            # Counted only now: suggestions cancelled before cost nothing.
            if not self._minute.take(user):
                await make()
        except RectoError as error:
            LOGGER.warning("no suggestions: %s", error)

    @contextmanager
    def _counted(self, user: str, task: asyncio.Task[None]) -> Generator[None]:
        tasks = self._under_way.setdefault(user, [])
        while len(tasks) >= self._settings.at_once:
            _end(tasks.pop(0))
        tasks.append(task)
        try:
            yield
        finally:
            if task in tasks:
                tasks.remove(task)
            if not tasks:
                self._under_way.pop(user, None)


def _end(task: asyncio.Task[None]) -> None:
    """Cancel the task once. A second cancellation would interrupt storing its usage."""
    if not task.cancelling():
        task.cancel()
