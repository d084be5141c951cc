"""Short values that all servers of a database share."""

from __future__ import annotations

from functools import partial

from recto.store.database import notes
from recto.store.database.database import Database


class Notes:
    """Short values that all servers of a database share."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, name: str) -> str | None:
        """What a note says; None where there is none."""
        return await self._database.read(partial(notes.find, name=name))

    async def add(self, name: str, value: str) -> str:
        """Write a note unless there is one. Returns what it says then: whoever asks, it is the same."""
        return await self._database.write(partial(notes.add, name=name, value=value))

    async def set(self, name: str, value: str) -> None:
        """Have a note say this from now on."""
        await self._database.write(partial(notes.set_value, name=name, value=value))
