"""The store on PostgreSQL: the common tests, and those of connections and concurrent servers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from secrets import token_hex

import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import await_only

from recto.config.run_settings import PostgresSettings
from recto.conversation.messages import UserMessage
from recto.errors import StoreBusy, StoreDown
from recto.store.database.postgres import PostgresDatabase
from recto.store.ports import RunChange
from recto.store.schema import RUNS
from recto.store.store import Store, open_store
from tests.store.suite import StoreSuite
from tests.store.suite.samples import NODE, admit, at, begin, claim_names, events, message_of
from tests.support.postgres import PostgresServer, postgres_server
from tests.waiting import settle

pytestmark = pytest.mark.full

PATIENCE = 20


@pytest.fixture
def store(postgres_store: Store) -> Store:
    return postgres_store


class TestPostgresStore(StoreSuite):
    """The common tests, on a server."""


async def test_X4_a_client_id_may_be_too_long_for_an_index(store: Store):
    # Random: an index compresses repetitions.
    long = replace(message_of("m1"), client_id=token_hex(6_000))
    await store.runs.record(await begin(store, "r1"), RunChange(entries=(long,)), at(1))
    (entry,) = await store.log.read_after("thread-1")
    assert isinstance(entry, UserMessage)
    assert (entry.id, entry.client_id) == (long.id, long.client_id)


async def test_a_claim_skips_a_run_that_another_process_is_claiming(store: Store, postgres_url: str):
    for number in range(3):
        await admit(store, f"r{number}", f"thread-{number}")
    other = create_async_engine(driver_url(postgres_url))
    async with asyncio.timeout(PATIENCE), other.begin() as connection:
        await connection.execute(select(RUNS.c.id).where(RUNS.c.name == "r0").with_for_update())
        assert await claim_names(store, NODE, at(0)) == ["r1", "r2"]
    assert await claim_names(store, NODE, at(0)) == ["r0"]
    await other.dispose()


async def test_an_unreachable_server_is_an_error_until_it_is_back():
    with postgres_server() as server:
        store = await open_store(server.url(server.create_database()))
        lease = await begin(store, "r1")
        await store.runs.record(lease, events(b"before"), at(1))
        server.stop()
        attempts = (store.runs.record(lease, events(b"lost"), at(2)), store.runs.find("ann", "r1"), store.probe())
        async with asyncio.timeout(PATIENCE):
            results = await asyncio.gather(*attempts, return_exceptions=True)
        assert [type(one) for one in results] == [StoreDown] * 3
        assert store.problem
        server.start()
        assert (await store.runs.record(lease, events(b"after"), at(3))).last_event == 2
        assert store.problem is None
        await store.close()
        # Also in the middle of a write.
        database = database_at(server.url())
        with pytest.raises(StoreDown):
            async with asyncio.timeout(PATIENCE), connection_held(database):
                server.stop()
        assert database.problem
        await database.close()


async def test_a_missing_database_is_an_error(postgres: PostgresServer):
    with pytest.raises(StoreDown, match="nowhere"):
        await open_store(postgres.url("nowhere"))


async def test_a_caller_without_a_free_connection_gets_an_error(postgres_url: str):
    database = database_at(postgres_url, PostgresSettings(connections=1, wait_seconds=0.1))
    async with connection_held(database):
        with pytest.raises(StoreBusy):
            await database.write(count_runs)
    assert await database.write(count_runs) == 0
    assert database.problem is None
    await database.close()


async def test_X4_leases_are_renewed_and_released_while_all_connections_are_busy(postgres_url: str):
    database = database_at(postgres_url, PostgresSettings(connections=1, wait_seconds=5))
    store = Store(database)
    lease = await begin(store, "r1")
    async with connection_held(database):
        assert await store.runs.renew(NODE, [lease], at(1)) == (lease,)
        assert await store.runs.list_cancelled([lease.run]) == ()
        await store.runs.release([lease], at(1))
    await store.close()


async def test_a_cancelled_write_leaves_nothing_behind(store: Store):
    lease = await begin(store, "r1")
    writing = asyncio.create_task(store.runs.record(lease, events(b"a", b"b"), at(1)))
    await settle()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    result = await store.events.list_after(lease.run, after=0, limit=10)
    assert len(result) in (0, 2)
    assert (await store.runs.record(lease, events(b"c"), at(2))).last_event == len(result) + 1


async def test_a_wrong_statement_is_not_a_problem_of_the_database(postgres_url: str):
    database = database_at(postgres_url)
    with pytest.raises(Exception, match="nothing_of_the_kind"):
        await database.write(lambda connection: connection.execute(text("SELECT * FROM nothing_of_the_kind")))
    assert database.problem is None
    await database.close()


@asynccontextmanager
async def connection_held(database: PostgresDatabase) -> AsyncGenerator[None]:
    """Keep a connection in the middle of a write until the block ends."""
    started, goes_on = asyncio.Event(), asyncio.Event()

    def hold(connection: Connection) -> None:
        connection.execute(text("SELECT 1"))
        started.set()
        await_only(goes_on.wait())
        connection.execute(text("SELECT 1"))

    holding = asyncio.create_task(database.write(hold))
    await started.wait()
    yield
    goes_on.set()
    await holding


def database_at(url: str, settings: PostgresSettings | None = None) -> PostgresDatabase:
    return PostgresDatabase(driver_url(url), settings)


def driver_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+asyncpg://")


def count_runs(connection: Connection) -> int:
    return len(connection.execute(select(RUNS.c.id)).all())
