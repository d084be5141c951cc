"""Batches of events: one commit for many runs."""

import asyncio
from pathlib import Path

from recto.store.database.opening import migrate
from recto.store.database.sqlite import SqliteDatabase
from recto.store.ports import Lease, RecordResult
from recto.store.runs.events import FEW, EventBatch
from recto.store.store import Store
from tests.store.suite.samples import begin
from tests.store.test_deletion import MeasuredDatabase
from tests.waiting import settle


async def say_one_by_one(batch: EventBatch, leases: list[Lease]) -> None:
    words = list[asyncio.Future[RecordResult]]()
    for lease in leases:
        words.append(batch.add(lease, (b"word",)))
        # As many loop turns as a write takes.
        await settle(5)
    await asyncio.gather(*words)


async def writes_of(folder: Path, runs: int) -> int:
    """Return the number of writes for events that runs add one by one, after all added one at once."""
    database = MeasuredDatabase(folder / "recto.db")
    await database.write(migrate)
    store, batch = Store(database), EventBatch(database)
    leases = [await begin(store, f"r{number}", f"thread-{number}") for number in range(runs)]
    database.writes = 0
    await asyncio.gather(*[batch.add(lease, (b"first",)) for lease in leases])
    await say_one_by_one(batch, leases)
    await batch.close()
    messages = [await store.events.list_after(lease.run, 0, 10) for lease in leases]
    await store.close()
    assert [[event.body for event in events] for events in messages] == [[b"first", b"word"]] * runs
    return database.writes


async def test_cancelling_a_batch_cancels_its_callers(tmp_path: Path):
    database = SqliteDatabase(tmp_path / "recto.db")
    await database.write(migrate)
    store, batch = Store(database), EventBatch(database)
    lease = await begin(store, "r1", "thread-1")
    before = asyncio.all_tasks()
    word = batch.add(lease, (b"word",))
    for task in asyncio.all_tasks() - before:
        task.cancel()
    async with asyncio.timeout(10):
        await asyncio.wait((word,))
    assert word.cancelled()
    await store.close()


async def test_events_of_many_runs_share_a_write(tmp_path: Path):
    assert await writes_of(tmp_path, FEW + 6) == 2


async def test_events_of_a_few_runs_are_written_at_once(tmp_path: Path):
    assert await writes_of(tmp_path, FEW) == 1 + FEW
