"""Words of many runs: gathered, where many speak at once, and committed together."""

import asyncio
from pathlib import Path

from recto.store.database.opening import migrate
from recto.store.database.sqlite import SqliteDatabase
from recto.store.ports import Lease, RecordResult
from recto.store.runs.events import FEW, EventBatch
from recto.store.store import Store
from tests.store.suite.samples import begin
from tests.store.test_deleting import Measured
from tests.waiting import settle


async def say_one_by_one(batch: EventBatch, leases: list[Lease]) -> None:
    words = list[asyncio.Future[RecordResult]]()
    for lease in leases:
        words.append(batch.add(lease, (b"word",)))
        # As many turns of the loop as a write takes.
        await settle(5)
    await asyncio.gather(*words)


async def writes_of(folder: Path, runs: int) -> int:
    """Writes for what each of some runs says in its own time, after all have spoken at once."""
    database = Measured(folder / "recto.db")
    await database.write(migrate)
    store, batch = Store(database), EventBatch(database)
    leases = [await begin(store, f"r{number}", f"thread-{number}") for number in range(runs)]
    database.writes = 0
    await asyncio.gather(*[batch.add(lease, (b"first",)) for lease in leases])
    await say_one_by_one(batch, leases)
    await batch.close()
    said = [await store.events.list_after(lease.run, 0, 10) for lease in leases]
    await store.close()
    assert [[event.body for event in events] for events in said] == [[b"first", b"word"]] * runs
    return database.writes


async def test_who_breaks_a_batch_off_leaves_nobody_waiting(tmp_path: Path):
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


async def test_words_of_many_runs_are_gathered(tmp_path: Path):
    assert await writes_of(tmp_path, FEW + 6) == 2


async def test_a_few_runs_wait_for_nobody(tmp_path: Path):
    assert await writes_of(tmp_path, FEW) == 1 + FEW
