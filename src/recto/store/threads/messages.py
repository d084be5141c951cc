"""Messages of threads as clients show them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from recto.config.access_settings import BodyLimits
from recto.store.database.database import Database, Result
from recto.store.runs import queued
from recto.store.threads import history, message_pages


class Messages:
    """Messages of threads as clients show them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reading = asyncio.Lock()

    async def read_day(self, owner: str, query: history.HistoryQuery) -> history.HistoryDay:
        """The newest day of a thread that has something to show (P13)."""
        return await self._with_sent(partial(history.history_day, owner=owner, query=query))

    async def read_page(self, owner: str, query: message_pages.MessagesQuery) -> message_pages.MessagesPage:
        """A page of a thread's messages in view, oldest first. A message that is not in view: WireError."""
        return await self._database.read(partial(message_pages.messages_page, owner=owner, query=query))

    async def list_queued(
        self, thread: str, most_bytes: int = BodyLimits.queued_bytes
    ) -> Sequence[queued.QueuedMessage]:
        """The user messages of a thread that wait for their turn, as far as their requests have so many bytes."""
        return await self._with_sent(partial(queued.queued_in, thread=thread, most_bytes=most_bytes))

    async def _with_sent(self, ask: Callable[..., Result | queued.InputsNeeded]) -> Result:
        """Ask again where inputs have to be read first: what is answered is all of one transaction.

        Inputs are read one by one, off the event loop: everybody else has their turn in between.
        """
        sent: queued.Sent = {}
        while isinstance(found := await self._database.read(partial(ask, sent=sent)), queued.InputsNeeded):
            async with self._reading:
                sent = {**sent, **await asyncio.to_thread(queued.read_sent, found.runs)}
        return found
