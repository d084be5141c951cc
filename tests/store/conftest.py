"""One PostgreSQL for all tests of a test process; each test gets a database of its own."""

from collections.abc import Iterator

import asyncpg
import pytest
import pytest_asyncio

from recto.store.store import open_store
from recto.testing.postgres import PostgresServer, postgres_server


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
    connection = await asyncpg.connect(migrated)
    await connection.execute("DELETE FROM threads; DELETE FROM profiles")
    await connection.close()
    return migrated
