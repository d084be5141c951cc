"""One PostgreSQL server for all tests of a process, and an empty database for each test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import Connection, delete

from recto.store.database.postgres import PostgresDatabase
from recto.store.schema import ATTACHMENTS, BLOBS, DATASETS, FILE_TOTALS, NOTES, PROFILES, SPENDING, THREADS
from recto.store.store import Store, open_store
from tests.support.postgres import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def migrated(postgres: PostgresServer) -> str:
    """Return a migrated database, shared by tests that leave no connection open."""
    url = postgres.url(postgres.create_database())
    store = await open_store(url)
    await store.close()
    return url


@pytest.fixture
async def postgres_url(migrated: str) -> str:
    """Return the database with empty tables. Emptying them is ten times as fast as a copy of the database."""
    database = PostgresDatabase(migrated.replace("://", "+asyncpg://", 1))
    await database.write(_empty)
    await database.close()
    return migrated


def _empty(connection: Connection) -> None:
    for table in (THREADS, ATTACHMENTS, BLOBS, FILE_TOTALS, DATASETS, NOTES, PROFILES, SPENDING):
        connection.execute(delete(table))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    yield store
    await store.close()


@pytest.fixture
async def postgres_store(postgres_url: str) -> AsyncIterator[Store]:
    store = await open_store(postgres_url)
    yield store
    await store.close()
