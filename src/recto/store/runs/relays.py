"""Requests relayed for other agents (X3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from recto.store.database.database import Database
from recto.store.ports import (
    CallEnd,
    RelayedCall,
    RelayedPath,
    RunEnding,
)
from recto.store.runs import relayed


class Relays:
    """Requests relayed for other agents (X3)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_path(self, owner: str, names: Sequence[str]) -> RelayedPath:
        """What a conversation of an owner grew by, of what it goes by up to each message."""
        return await self._database.read(partial(relayed.path_of, owner=owner, names=names))

    async def find_newest(self, owner: str, thread: str) -> str | None:
        """What the newest request of a thread goes by; None where there is none."""
        newest = await self._database.read(partial(relayed.newest_of, owner=owner, thread=thread), few=True)
        return newest.name if newest else None

    async def begin(self, call: RelayedCall) -> None:
        """Store a request of another agent before it is sent on. A user with no tokens left today: LimitReached."""
        await self._database.write(partial(relayed.begin, relayed=call), size=relayed.size_of(call))

    async def end(self, run: str, call: CallEnd, ending: RunEnding) -> None:
        """Write down how such a request went."""
        await self._database.write(partial(relayed.end, run=run, call=call, ending=ending), size=len(call.usage or b""))
