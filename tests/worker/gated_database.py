"""A database whose writes are counted, can be held up, and can fail."""

import asyncio
from pathlib import Path

from recto.errors import StoreDown
from recto.store.database.database import Result, Transaction
from recto.store.database.sqlite import SqliteDatabase


class Gated(SqliteDatabase):
    """Writes wait for `gate`. All fail while it `is_broken`, else number `fail_at` and those that hold `refused`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gate = asyncio.Event()
        self.gate.set()
        self.writes = 0
        self.fail_at = -1
        self.is_broken = False
        self.refused = b""

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:
        self.writes += 1
        await self.gate.wait()
        if self.is_broken or self.writes == self.fail_at:
            raise StoreDown(problem="the disk is full")
        if self.refused and self.refused in repr(getattr(work, "keywords", "")).encode():
            raise ValueError("no index can hold this")
        return await super().write(work, size=size)
