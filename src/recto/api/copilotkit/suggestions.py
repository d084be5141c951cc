"""Suggestions in progress in this process, limited in number and rate per user.

At the limit, a new suggestion replaces the oldest. A loading chat requests ten suggestions and cancels nine of them,
so each waits a moment before its model call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Protocol

from recto.agents.agent import Agent
from recto.api.access.rate import Buckets
from recto.config.run_settings import SuggestionSettings
from recto.conversation.events import Event
from recto.conversation.input.suggestion_input import SuggestionInput
from recto.errors import LimitReached, RectoError

LOGGER = logging.getLogger("recto.api")
RATE_LIMIT = "You have reached the limit of {limit} suggestions per minute."


class Suggest(Protocol):
    """Function that makes the model call of a suggestion. Cancelling its task ends the call."""

    async def __call__(
        self, owner: str, agent: Agent, suggestion: SuggestionInput, /, *, emit: Callable[[Event], None]
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
        self._tasks = dict[str, list[asyncio.Task[None]]]()

    @property
    def is_on(self) -> bool:
        """True if suggestions are generated."""
        return self._settings.is_on and self._make is not None

    def check_rate(self, user: str) -> None:
        """Raise LimitReached if the user has reached the rate limit."""
        if wait := self._minute.wait(user):
            raise LimitReached(RATE_LIMIT.format(limit=self._settings.per_minute), retry=wait)

    async def events(self, user: str, agent: Agent, suggestion: SuggestionInput) -> AsyncGenerator[Event]:
        """Yield the events of a suggestion. Closing the generator cancels the model call."""
        if self._make is None or not self.is_on:
            return
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        make = partial(self._make, user, agent, suggestion, emit=queue.put_nowait)

        async def work() -> None:
            try:
                await asyncio.sleep(self._settings.pause)
                # Count the suggestion only now, because one that is cancelled earlier costs nothing.
                if not self._minute.take(user):
                    await make()
            except RectoError as error:
                LOGGER.warning("suggestion failed: %s", error)

        task = asyncio.create_task(work())
        # End the queue in a callback, which runs even if the task is cancelled before it starts.
        task.add_done_callback(lambda _: queue.put_nowait(None))
        tasks = self._tasks.setdefault(user, [])
        while len(tasks) >= self._settings.at_once:
            _cancel(tasks.pop(0))
        tasks.append(task)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            _cancel(task)
            try:
                # Let the task store the usage before the client sees the end.
                await asyncio.wait([task])
            finally:
                if task in tasks:
                    tasks.remove(task)
                if not tasks:
                    self._tasks.pop(user, None)

    def stop(self) -> None:
        """Cancel all suggestions at shutdown."""
        for task in [task for tasks in self._tasks.values() for task in tasks]:
            _cancel(task)


def _cancel(task: asyncio.Task[None]) -> None:
    """Cancel the task once. A second cancellation would interrupt storing its usage."""
    if not task.cancelling():
        task.cancel()
