"""PostgreSQL over asyncpg: each write a transaction of its own, the same work as on SQLite."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, TimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from recto.config.run_settings import PostgresSettings
from recto.errors import Conflict, StoreBusy, StoreDown
from recto.store.database.database import Result, Transaction

# Classes of SQLSTATE: connection, read only, out of resources, shut down, system, internal.
BROKEN = ("08", "25006", "53", "57", "58", "XX")
# Two transactions met, and one had to go: deadlock, serialization. It may simply be done again.
MET = ("40001", "40P01", "55P03")
TRIES = 3


class PostgresDatabase:
    """A database shared by many processes."""

    def __init__(self, url: str, settings: PostgresSettings | None = None) -> None:
        given = settings or PostgresSettings()
        self._engine = _engine(url, given.connections, given.wait_seconds)
        self._reading = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._first = _engine(url, 1, given.wait_seconds)
        self._connections = given.connections
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Why writes fail at present."""
        return self._problem

    @property
    def is_shared(self) -> bool:
        """Several servers may use it."""
        return True

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:  # noqa: ARG002 - so is each here
        """Run work in a transaction; again, where it met another's and had to go."""
        return await self._write(self._engine, work)

    async def write_first(self, work: Transaction[Result]) -> Result:
        """Run work in a transaction, on a connection that nothing else has."""
        return await self._write(self._first, work)

    async def _write(self, engine: AsyncEngine, work: Transaction[Result]) -> Result:
        for _ in range(TRIES):
            try:
                async with self._connected(engine) as connection, connection.begin():
                    result = await connection.run_sync(work)
            except DBAPIError as error:
                if _state(error) not in MET:
                    raise
                continue
            self._problem = None
            return result
        raise StoreBusy(waiting=self._connections)

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:  # noqa: ARG002 - each is a transaction of its own
        """Run work on a connection: all it asks is answered as of one moment."""
        async with self._connected(self._reading) as connection:
            return await connection.run_sync(work)

    def forget(self) -> None:
        """Keep no compiled statement."""
        self._engine.clear_compiled_cache()
        self._first.clear_compiled_cache()

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()
        await self._first.dispose()

    @asynccontextmanager
    async def _connected(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        connection = await self._connect(engine)
        try:
            async with aclosing(connection):
                yield connection
        except IntegrityError as error:
            raise Conflict(f"What is stored already stands against it: {error.orig}.") from error
        except (DBAPIError, OSError) as error:
            if not _is_broken(error):
                raise
            raise self._down(error) from error

    async def _connect(self, engine: AsyncEngine) -> AsyncConnection:
        try:
            return await engine.connect()
        except TimeoutError as error:
            raise StoreBusy(waiting=self._connections) from error
        except Exception as error:
            # Whatever the driver says here, there is no connection.
            raise self._down(error) from error

    def _down(self, error: Exception) -> StoreDown:
        # Without the statement and its values, which SQLAlchemy's own text has.
        self._problem = str(error.orig if isinstance(error, DBAPIError) else error) or repr(error)
        return StoreDown(problem=self._problem)


def _engine(url: str, connections: int, wait_seconds: float) -> AsyncEngine:
    return create_async_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait_seconds,
        pool_pre_ping=True,
        # What people said does not belong into errors and logs.
        hide_parameters=True,
    )


def _is_broken(error: DBAPIError | OSError) -> bool:
    """Whether it is the server that failed, not what it was asked."""
    if isinstance(error, OSError) or error.connection_invalidated:
        return True
    return _state(error).startswith(BROKEN)


def _state(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", None) or "")
