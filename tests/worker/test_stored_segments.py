"""Segments that a run offers to the store: only those the store does not have, also after cleaning."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recto.agents.agent import CHAT
from recto.engine.ports import Signal
from recto.models.demo.demo_model import DemoModel
from recto.page.body import Segment
from recto.store.database.database import Database
from recto.store.database.opening import migrate
from recto.store.database.sqlite import SqliteDatabase
from recto.store.ports import Lease, RecordResult, RunChange
from recto.store.runs.runs import Runs
from recto.store.store import Store
from recto.store.threads.cleanup import Retention
from recto.tools.load_tools import make_built_in_tools
from recto.tools.registry import Registry
from recto.worker.loop import work
from recto.worker.runtime import Runtime
from tests.stored_runs import WHO, now
from tests.support.client import ask
from tests.worker.plays import admission_of, make_runtime

THREAD = "thread"


class RecordingRuns(Runs):
    """Runs that record the offered segments of each call."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.offered: list[Sequence[Segment]] = []

    async def record(self, lease: Lease, change: RunChange, now: datetime) -> RecordResult:
        if change.call_start:
            self.offered.append(change.call_start.segments)
        return await super().record(lease, change, now)


class RecordingStore(Store):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.runs = self.recording = RecordingRuns(database)

    @property
    def offered_segments(self) -> list[Sequence[Segment]]:
        return self.recording.offered


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[RecordingStore]:
    database = SqliteDatabase(tmp_path / "recto.db")
    await database.write(migrate)
    store = RecordingStore(database)
    yield store
    await store.close()


async def finish_run(runtime: Runtime) -> str:
    """Finish a run of the thread. Return its id."""
    run = (await runtime.store.runs.admit(admission_of(ask("What is 12 * 7?", thread=THREAD), "chat"), WHO)).run
    assert await work(runtime, run, Signal())
    return run.id


def a_demo_runtime(store: Store) -> Runtime:
    """Return a runtime whose agent uses a tool, so that each run makes several calls."""
    registries = {"chat": Registry(make_built_in_tools())}
    return make_runtime(store, model=DemoModel(), agents={"chat": CHAT}, registries=registries)


async def test_the_first_call_of_a_run_offers_only_segments_that_the_last_run_did_not_store(store: RecordingStore):
    runtime = a_demo_runtime(store)
    await finish_run(runtime)
    stored_segments = {segment for segments in store.offered_segments for segment in segments}
    store.offered_segments.clear()
    run = await finish_run(runtime)
    assert store.offered_segments[0]
    assert stored_segments.isdisjoint(store.offered_segments[0])
    assert not (await store.calls.read(run, 1)).damaged


async def test_a_run_offers_all_segments_after_cleaning_deleted_those_of_the_last_run(store: RecordingStore):
    runtime = a_demo_runtime(store)
    await finish_run(runtime)
    stored_segments = set(store.offered_segments[0])
    assert (await store.threads.clean(Retention(calls_before=now() + timedelta(days=1)))).segments
    store.offered_segments.clear()
    run = await finish_run(runtime)
    assert stored_segments & set(store.offered_segments[0])
    assert not (await store.calls.read(run, 1)).damaged
