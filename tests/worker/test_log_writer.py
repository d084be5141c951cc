"""X4: the one way to write for a run. What it begins with is held for its first write, and is written once."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from recto.agents.agent import CHAT
from recto.conversation.events import RunStarted
from recto.conversation.input.run_input import RunInput
from recto.conversation.log import Entry
from recto.conversation.messages import Text, UserMessage
from recto.engine.ports import Signal
from recto.errors import LeaseLost, StoreDown
from recto.store.database.opening import migrate
from recto.store.ports import Cancel, RunChange, StoredRun
from recto.store.store import Store
from recto.tools.registry import Registry
from recto.worker.log_writer import LogWriter
from recto.worker.recorder import Recorder
from recto.worker.run_inputs import PageState, RunInputs
from tests.stored_runs import WHO, an_admission, now
from tests.waiting import settle
from tests.worker.gated_database import Gated
from tests.worker.plays import make_runtime

STARTED = RunStarted(thread="t", run="r")


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """A claimed run with its writer."""

    database: Gated
    store: Store
    row: StoredRun
    writer: LogWriter
    signal: Signal

    async def ids(self) -> list[str]:
        return [entry.id for entry in await self.store.log.read_after(self.row.thread)]

    async def events(self) -> list[bytes]:
        return [event.body for event in await self.store.events.list_after(self.row.id, 0, 100)]


@pytest.fixture
async def claimed(tmp_path: Path) -> AsyncGenerator[Claimed]:
    database = Gated(tmp_path / "recto.db")
    store = Store(database)
    await database.write(migrate)
    row, runtime, signal = (await store.runs.admit(an_admission(), WHO)).run, make_runtime(store), Signal()
    inputs = RunInputs(
        runtime=runtime,
        row=row,
        request=RunInput(thread=row.thread, run=row.name),
        agent=CHAT,
        model=runtime.models.default,
        pages=PageState(tools=Registry()),
    )
    recorder = Recorder(store, runtime.hub, row.lease, clock=now, settings=runtime.recorder)
    writer = LogWriter(recorder, inputs, (), signal)
    try:
        yield Claimed(database=database, store=store, row=row, writer=writer, signal=signal)
    finally:
        await recorder.close()
        await store.close()


def text_entry(id: str) -> Entry:
    return UserMessage(id=id, time=now(), parts=(Text(text="Hi."),))


def confirm_change() -> RunChange:
    return RunChange(entries=[text_entry("asked")], entered=True)


async def test_what_is_held_is_in_the_log_here_at_once_and_in_the_store_with_the_next_write(claimed: Claimed):
    claimed.writer.hold(confirm_change(), [STARTED])
    assert ([entry.id for entry in claimed.writer.log], await claimed.ids()) == (["asked"], [])
    await claimed.writer.write(RunChange(entries=[text_entry("m1")]))
    await claimed.writer.write(RunChange(entries=[text_entry("m2")]))
    assert [entry.id for entry in claimed.writer.log] == await claimed.ids() == ["asked", "m1", "m2"]
    assert [entry.seq for entry in claimed.writer.log] == [1, 2, 3]
    assert len(await claimed.events()) == 1
    assert (await claimed.store.runs.find(claimed.row.owner, claimed.row.id)).entered


async def test_entries_that_were_held_stay_the_same_objects_where_their_numbers_were_right(claimed: Claimed):
    claimed.writer.hold(confirm_change(), [])
    (entry,) = claimed.writer.log
    await claimed.writer.flush()
    # What pages remember of it is on it.
    assert claimed.writer.log[0] is entry


async def test_what_is_held_is_written_alone_where_nothing_else_is(claimed: Claimed):
    await claimed.writer.flush()
    assert await claimed.events() == []
    claimed.writer.hold(confirm_change(), [STARTED])
    for _ in range(2):
        await claimed.writer.flush()
    assert (await claimed.ids(), len(await claimed.events())) == (["asked"], 1)


@pytest.mark.parametrize("is_written", [False, True])
async def test_nothing_is_held_twice(claimed: Claimed, is_written: bool):
    claimed.writer.hold(confirm_change(), [])
    if is_written:
        await claimed.writer.flush()
    with pytest.raises(AssertionError, match="enters the log once"):
        claimed.writer.hold(confirm_change(), [])


async def test_what_is_held_is_not_written_by_two_writes_at_once(claimed: Claimed):
    claimed.writer.hold(confirm_change(), [STARTED])
    claimed.database.gate.clear()
    first = asyncio.create_task(claimed.writer.write(RunChange(entries=[text_entry("m1")])))
    await settle()
    with pytest.raises(AssertionError, match="store them again"):
        await claimed.writer.write(RunChange(entries=[text_entry("m2")]))
    claimed.database.gate.set()
    await first
    await asyncio.gather(*[claimed.writer.write(RunChange(entries=[text_entry(f"m{place}")])) for place in (3, 4)])
    assert await claimed.ids() == ["asked", "m1", "m3", "m4"] == [entry.id for entry in claimed.writer.log]
    assert len(await claimed.events()) == 1


async def test_what_could_not_be_written_stays_held(claimed: Claimed):
    claimed.writer.hold(confirm_change(), [STARTED])
    claimed.database.is_broken = True
    with pytest.raises(StoreDown):
        await claimed.writer.write(RunChange(entries=[text_entry("lost")]))
    assert [entry.id for entry in claimed.writer.log] == ["asked"]
    claimed.database.is_broken = False
    await claimed.writer.write(RunChange(entries=[text_entry("m1")]))
    assert await claimed.ids() == ["asked", "m1"]
    assert len(await claimed.events()) == 1


async def test_a_write_that_is_broken_off_is_done_all_the_same(claimed: Claimed):
    claimed.writer.hold(confirm_change(), [])
    claimed.database.gate.clear()
    writing = asyncio.create_task(claimed.writer.write(RunChange(entries=[text_entry("m1")])))
    for _ in range(2):
        await settle()
        writing.cancel()
    await settle()
    claimed.database.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await claimed.ids() == ["asked", "m1"] == [entry.id for entry in claimed.writer.log]


async def test_X4_who_has_lost_the_lease_writes_nothing_of_what_is_held(claimed: Claimed):
    claimed.writer.hold(confirm_change(), [STARTED])
    await claimed.store.runs.release((claimed.row.lease,), now())
    assert len(await claimed.store.runs.claim(WHO, now(), 1)) == 1
    with pytest.raises(LeaseLost):
        await claimed.writer.flush()
    assert (await claimed.ids(), await claimed.events()) == ([], [])


async def test_P8_a_wish_to_end_the_run_is_heard_with_the_next_write(claimed: Claimed):
    await claimed.store.runs.cancel(claimed.row, Cancel(reason="enough", now=now(), events=()))
    assert not claimed.signal.cancelled.is_set()
    await claimed.writer.write(RunChange(entries=[text_entry("m1")]))
    assert claimed.signal.cancelled.is_set()
