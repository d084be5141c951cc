"""PostgreSQL over asyncpg: each write a transaction of its own, the same work as on SQLite."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from recto.errors import StoreDown
from recto.store.database import Result, Work


@dataclass(frozen=True, kw_only=True)
class PostgresSettings:
    """How many connections to hold at most, and how long to wait for one."""

    connections: int = 10
    wait_seconds: float = 30


class PostgresDatabase:
    """A database shared by many processes."""

    def __init__(self, url: str, settings: PostgresSettings | None = None) -> None:
        wishes = settings or PostgresSettings()
        self._engine = create_async_engine(
            url, pool_size=wishes.connections, max_overflow=0, pool_timeout=wishes.wait_seconds, pool_pre_ping=True
        )
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Why writes fail at present."""
        return self._problem

    async def write(self, work: Work[Result]) -> Result:
        """Run work in a transaction."""
        async with self._connected() as connection, connection.begin():
            return await connection.run_sync(work)

    async def read(self, work: Work[Result]) -> Result:
        """Run work on a connection."""
        async with self._connected() as connection:
            return await connection.run_sync(work)

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[AsyncConnection]:
        try:
            async with self._engine.connect() as connection:
                yield connection
        except (OperationalError, InterfaceError, OSError) as error:
            self._problem = str(error.orig if isinstance(error, DBAPIError) else error)
            raise StoreDown(problem=self._problem) from error
        self._problem = None
