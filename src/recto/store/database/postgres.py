"""PostgreSQL over asyncpg. Each write is one transaction; the work is the same as on SQLite."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, TimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from recto.config.run_settings import PostgresSettings
from recto.errors import Conflict, StoreBusy, StoreDown
from recto.store.database.database import Result, Transaction

# SQLSTATE classes of database failures: connection, read only, out of resources, shutdown, system, internal.
FAILURES = ("08", "25006", "53", "57", "58", "XX")
# SQLSTATE codes of conflicts between transactions (deadlock, serialization, lock), which are retried.
CONFLICTS = ("40001", "40P01", "55P03")
TRIES = 3


class PostgresDatabase:
    """A database shared by several processes."""

    def __init__(self, url: str, settings: PostgresSettings | None = None) -> None:
        settings_or_default = settings or PostgresSettings()
        self._engine = _create_engine(url, settings_or_default.connections, settings_or_default.wait_seconds)
        self._reading = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._reserved = _create_engine(url, 1, settings_or_default.wait_seconds)
        self._connections = settings_or_default.connections
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Reason why writes fail; None while they succeed."""
        return self._problem

    @property
    def is_shared(self) -> bool:
        """True: several servers may share the database."""
        return True

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:  # noqa: ARG002 - SQLite only
        """Run work in a transaction. Retry if it conflicts with another one."""
        return await self._write(self._engine, work)

    async def write_first(self, work: Transaction[Result]) -> Result:
        """Run work in a transaction, on a reserved connection."""
        return await self._write(self._reserved, work)

    async def _write(self, engine: AsyncEngine, work: Transaction[Result]) -> Result:
        for _ in range(TRIES):
            try:
                async with self._use_connection(engine) as connection, connection.begin():
                    result = await connection.run_sync(work)
            except DBAPIError as error:
                if _read_sqlstate(error) not in CONFLICTS:
                    raise
                continue
            self._problem = None
            return result
        raise StoreBusy(waiting=self._connections)

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:  # noqa: ARG002 - SQLite only
        """Run work in a read-only transaction with one snapshot."""
        async with self._use_connection(self._reading) as connection:
            return await connection.run_sync(work)

    def forget(self) -> None:
        """Drop compiled statements."""
        self._engine.clear_compiled_cache()
        self._reserved.clear_compiled_cache()

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()
        await self._reserved.dispose()

    @asynccontextmanager
    async def _use_connection(self, engine: AsyncEngine) -> AsyncGenerator[AsyncConnection]:
        connection = await self._connect(engine)
        try:
            async with aclosing(connection):
                yield connection
        except IntegrityError as error:
            raise Conflict(f"Stored rows conflict with this change: {error.orig}.") from error
        except DBAPIError as error:
            if not error.connection_invalidated and not _read_sqlstate(error).startswith(FAILURES):
                raise
            raise self._report_failure(error) from error
        except OSError as error:
            raise self._report_failure(error) from error

    async def _connect(self, engine: AsyncEngine) -> AsyncConnection:
        try:
            return await engine.connect()
        except TimeoutError as error:
            raise StoreBusy(waiting=self._connections) from error
        except Exception as error:
            # The driver raises many classes here. Each means that no connection is available.
            raise self._report_failure(error) from error

    def _report_failure(self, error: Exception) -> StoreDown:
        # Omit the statement and its values, which the text of SQLAlchemy's error contains.
        self._problem = str(error.orig if isinstance(error, DBAPIError) else error) or repr(error)
        return StoreDown(problem=self._problem)


def _create_engine(url: str, connections: int, wait_seconds: float) -> AsyncEngine:
    return create_async_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait_seconds,
        pool_pre_ping=True,
        # Keep user content out of errors and logs.
        hide_parameters=True,
    )


def _read_sqlstate(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", None) or "")
