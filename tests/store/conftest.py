"""One PostgreSQL for all tests of a test process; each test gets a database of its own."""

from collections.abc import Iterator

import pytest
import pytest_asyncio
from sqlalchemy import Connection, delete

from recto.store.database.postgres import PostgresDatabase
from recto.store.schema import ATTACHMENTS, BLOBS, DATASETS, FILE_TOTALS, NOTES, PROFILES, SPENDING, THREADS
from recto.store.store import open_store
from tests.support.postgres import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def migrated(postgres: PostgresServer) -> str:
    """A database with all tables, shared by the tests that leave nothing open in it."""
    url = postgres.url(postgres.create_database())
    store = await open_store(url)
    await store.close()
    return url


@pytest.fixture
async def postgres_url(migrated: str) -> str:
    """All tables, and nothing in them. Emptying them is ten times as fast as a copy of the database."""
    database = PostgresDatabase(migrated.replace("://", "+asyncpg://", 1))
    await database.write(_empty)
    await database.close()
    return migrated


def _empty(connection: Connection) -> None:
    for table in (THREADS, ATTACHMENTS, BLOBS, FILE_TOTALS, DATASETS, NOTES, PROFILES, SPENDING):
        connection.execute(delete(table))
