"""Deletion and cleanup in small writes that resume after an interruption."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select

from recto.errors import Conflict, NotFound
from recto.store.database.database import Database, Result, Transaction
from recto.store.database.opening import migrate
from recto.store.database.postgres import PostgresDatabase
from recto.store.database.sqlite import SqliteDatabase
from recto.store.ports import RunChange, RunEnding
from recto.store.schema import CALLS, EVENTS, FILE_REFS, LOG, RUNS, SEGMENTS, THREADS
from recto.store.statement import get_driver
from recto.store.store import Store
from recto.store.threads import cleanup, deletion
from recto.store.threads.cleanup import CleanupCounts, Retention
from recto.store.threads.deletion import ROWS, RUNS_AT_ONCE, detach_threads
from tests.store.suite.calls import body_of, call
from tests.store.suite.samples import NODE, admission, admit, at, begin, lease_of, message_of
from tests.store.suite.threads import end, list_threads

LATER = at(1_000_000)
MANY = 2 * ROWS + 500
# A run's row is deleted with its calls and events.
MOST = ROWS + 2 * RUNS_AT_ONCE


class MeasuredDatabase(SqliteDatabase):
    """A database that counts its writes and the rows of the largest."""

    most = writes = 0

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:
        def measured(connection: Connection) -> Result:
            before = get_driver(connection).total_changes
            result = work(connection)
            self.most, self.writes = max(self.most, get_driver(connection).total_changes - before), self.writes + 1
            return result

        return await super().write(measured, size=size)


@pytest.fixture
async def measured(tmp_path: Path) -> AsyncIterator[MeasuredDatabase]:
    database = MeasuredDatabase(tmp_path / "recto.db")
    await database.write(migrate)
    yield database
    await database.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> AsyncIterator[Database]:
    if request.param == "sqlite":
        store: Database = SqliteDatabase(tmp_path / "recto.db")
    else:
        store = PostgresDatabase(postgres_url.replace("://", "+asyncpg://", 1))
    await store.write(migrate)
    yield store
    await store.close()


async def talk_long(store: Store) -> None:
    """Make a thread of many runs; one of them has many events, entries and segments."""
    lease = await begin(store, "long")
    page = "".join(chr(0x4E00 + number) for number in range(MANY))
    entries = [message_of(f"m{number}") for number in range(MANY)]
    change = RunChange(
        events=[b"x"] * MANY, entries=entries, call_start=call(1, page), ending=RunEnding(outcome="done")
    )
    await store.runs.record(lease, change, at(1))
    for number in range(2 * RUNS_AT_ONCE):
        lease = await begin(store, f"r{number}")
        change = RunChange(events=[b"x"] * 100, call_start=call(1, "ab"), ending=RunEnding(outcome="done"))
        await store.runs.record(lease, change, at(2))


async def test_P17_a_long_thread_is_deleted_in_small_writes(measured: MeasuredDatabase):
    store = Store(measured)
    await talk_long(store)
    rows = [{"thread": "thread-1", "id": f"r-{number}", "body": b"{}", "created": 1} for number in range(MANY)]
    await measured.write(lambda connection: connection.execute(FILE_REFS.insert(), rows))
    measured.most = measured.writes = 0
    await store.threads.delete("ann", "thread-1")
    assert 0 < measured.most <= MOST
    assert await measured.read(counts) == [0] * 7
    assert measured.writes < 40


async def test_a_long_thread_is_cleaned_in_small_writes(measured: MeasuredDatabase):
    store = Store(measured)
    await talk_long(store)
    measured.most = 0
    done = await store.threads.clean(Retention(events_before=LATER, calls_before=LATER))
    assert 0 < measured.most <= MOST
    runs = 2 * RUNS_AT_ONCE
    assert (done.events, done.calls, done.segments) == (MANY + 100 * runs, 1 + runs, MANY + 2)
    await store.threads.clean(Retention(threads_before=LATER))
    assert measured.most <= MOST
    assert await measured.read(counts) == [0] * 7


def counts(connection: Connection) -> list[int]:
    tables = (THREADS, RUNS, EVENTS, CALLS, SEGMENTS, LOG, FILE_REFS)
    return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]


async def test_a_thread_in_deletion_does_not_exist_and_accepts_no_run(database: Database):
    store = Store(database)
    await end(store, "r1", "done")
    await admit(store, "r2")
    await database.write(partial(detach_threads, ids=["thread-1"]))
    assert await list_threads(store) == []
    with pytest.raises(NotFound):
        await store.threads.get("ann", "thread-1")
    with pytest.raises(NotFound):
        await store.threads.delete("ann", "thread-1")
    for owner in ("ann", "bob"):
        with pytest.raises(Conflict, match="was deleted just now"):
            await store.runs.admit(admission("r3", owner=owner))
    assert await store.runs.claim(NODE, at(99), 9) == ()


async def test_cleanup_finishes_an_interrupted_deletion(database: Database):
    store = Store(database)
    await end(store, "r1", "done")
    await end(store, "r2", "done", "thread-2")
    await database.write(partial(detach_threads, ids=["thread-1"]))
    assert await store.threads.clean(Retention(threads_before=at(0))) == CleanupCounts(threads=1)
    assert await store.threads.clean(Retention()) == CleanupCounts()
    assert await list_threads(store) == ["thread-2"]
    assert (await admit(store, "r1", owner="bob")).owner == "bob"


async def test_a_second_deletion_leaves_a_recreated_thread_alone(database: Database):
    store = Store(database)
    await end(store, "r1", "done")
    await store.threads.delete("ann", "thread-1")
    await end(store, "r2", "done")
    before = await database.read(counts)
    await deletion.delete_rest(database, "thread-1")
    assert await database.read(counts) == before


async def test_a_new_run_protects_segments_whatever_its_id(database: Database):
    store = Store(database)
    run = await end(store, "r1", "done")
    await database.write(partial(cleanup.delete_calls, thread="thread-1", runs=[run]))
    unused = await database.read(partial(cleanup.find_unused_segments, thread="thread-1"))
    # From a machine whose clock is behind.
    await store.runs.admit(replace(admission("r2"), id="00000000-0000-7000-8000-000000000000"))
    (started,) = await store.runs.claim(NODE, at(1), limit=1)
    older = RunChange(call_start=call(1, "ab", new=""), ending=RunEnding(outcome="done"))
    await store.runs.record(lease_of(started), older, at(2))
    assert await database.write(partial(cleanup.delete_segments, thread="thread-1", unused=unused)) == 0
    assert [one.body for one in await store.calls.list_full(started.id)] == [body_of("ab")]


async def test_calls_of_a_thread_with_an_open_run_stay(database: Database):
    store = Store(database)
    run = await end(store, "r1", "done")
    await admit(store, "r2")
    assert await database.write(partial(cleanup.delete_calls, thread="thread-1", runs=[run])) == 0
    assert len(await store.calls.list_full(run)) == 1
