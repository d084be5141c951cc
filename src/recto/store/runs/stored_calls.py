"""Model calls of runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from recto.store.database.database import Database
from recto.store.ports import (
    StoredCall,
)
from recto.store.runs import calls
from recto.store.threads import thread_rows


class Calls:
    """Model calls of runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_full(self, run: str) -> Sequence[StoredCall]:
        """The model calls of a run, in order, each as it was sent."""
        return await self._database.read(partial(calls.calls_of, run=run))

    async def list_summaries(self, run: str) -> Sequence[calls.CallSummary]:
        """The model calls of a run, in order, without their pages."""
        return await self._database.read(partial(calls.list_summaries, run=run))

    async def exists(self, run: str, number: int) -> bool:
        """Return whether a model call is stored. Cleaning deletes old ones."""
        return await self._database.read(partial(calls.is_stored, run=run, number=number), few=True)

    async def read(self, run: str, number: int) -> calls.CheckedCall:
        """One model call with its page, checked against what was sent. Damage is named, not raised."""
        return await self._database.read(partial(calls.read_call, run=run, number=number))

    async def find_previous(self, run: str, number: int) -> tuple[str, int] | None:
        """The call before a call in its thread, for the same purpose: its run and number."""
        return await self._database.read(partial(calls.before, run=run, number=number))

    async def find_answered(self, run: str, number: int) -> tuple[str, int] | None:
        """A call for a reply, or else the newest before it in its thread, that has usage: its run and number."""
        return await self._database.read(partial(calls.answered, run=run, number=number))

    async def list_newest(self, owner: str, id: str, limit: int) -> Sequence[calls.ThreadCall]:
        """The newest model calls of a thread, newest first, without pages and manifests."""
        return await self._database.read(partial(thread_rows.calls_of_thread, owner=owner, id=id, limit=limit))
