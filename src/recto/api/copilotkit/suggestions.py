"""Suggestions under way in this process: how many and how often for each user. A newer one takes an older one's place.

A chat asks for ten as its page loads and gives up nine of them: each waits a moment before its model is asked.
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
    """Asks a model. Cancelling it ends the call."""

    async def __call__(
        self, owner: str, agent: Agent, asked: SuggestionInput, /, *, say: Callable[[Event], None]
    ) -> None: ...


class Suggestions:
    """Makes them, within limits. Without a way to make any there are none."""

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
        """Whether any are made."""
        return self._settings.is_on and self._make is not None

    def check_rate(self, user: str) -> None:
        """Raise LimitReached where the model was asked as often as it may be."""
        if wait := self._minute.wait(user):
            raise LimitReached(OFTEN.format(most=self._settings.per_minute), retry=wait)

    async def events(self, user: str, agent: Agent, asked: SuggestionInput) -> AsyncGenerator[Event]:
        """What is heard of one while it is made. Closing this ends the call of the model."""
        if self._make is None or not self.is_on:
            return
        said: _Said = asyncio.Queue()
        make = partial(self._make, user, agent, asked, say=said.put_nowait)
        making = asyncio.create_task(self._work(make, user))
        # Also where it is ended before it began.
        making.add_done_callback(lambda _: said.put_nowait(None))
        with self._counted(user, making):
            try:
                while (event := await said.get()) is not None:
                    yield event
            finally:
                _end(making)
                # What it took is written down before anybody is told that it is over.
                await asyncio.wait([making])

    def stop(self) -> None:
        """End all of them: nobody waits for one while the server stops."""
        for task in [task for tasks in self._under_way.values() for task in tasks]:
            _end(task)

    async def _work(self, make: Callable[[], Awaitable[None]], user: str) -> None:
        try:
            await asyncio.sleep(self._settings.pause)
            # Counted only now: those that were given up meanwhile cost nothing.
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
    """Cancel it, once: a second time would break off how it writes down what it took."""
    if not task.cancelling():
        task.cancel()
