"""P7: what a run says is merged, numbered, committed, then published; never in another order."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from recto.conversation.events import (
    Event,
    ReasoningEnded,
    ReasoningSaid,
    ReasoningStarted,
    RunFinished,
    RunStarted,
    TextEnded,
    TextSaid,
    TextStarted,
)
from recto.conversation.json import load_object
from recto.conversation.messages import AssistantMessage, Text
from recto.engine.hub import Hub
from recto.errors import LeaseLost
from recto.store.database.database import Result, Transaction
from recto.store.database.opening import migrate
from recto.store.database.sqlite import SqliteDatabase
from recto.store.ports import Lease, RunChange
from recto.store.store import Store
from recto.worker.recorder import Recorder, RecorderSettings
from tests.stored_runs import a_lease, lose, now

LONG = 60.0
STARTED = TextStarted(message="m")
DONE = RunFinished(thread="t", run="r")


def said(words: str) -> TextSaid:
    return TextSaid(message="m", delta=words)


class Gated:
    """A database whose writes can be counted and held up."""

    def __init__(self, path: Path) -> None:
        self._inner = SqliteDatabase(path)
        self.gate = asyncio.Event()
        self.gate.set()
        self.writes = 0

    @property
    def problem(self) -> str | None:
        return self._inner.problem

    @property
    def is_shared(self) -> bool:
        return self._inner.is_shared

    async def write(self, work: Transaction[Result]) -> Result:
        self.writes += 1
        await self.gate.wait()
        return await self._inner.write(work)

    async def write_first(self, work: Transaction[Result]) -> Result:
        return await self.write(work)

    async def read(self, work: Transaction[Result]) -> Result:
        return await self._inner.read(work)

    async def close(self) -> None:
        await self._inner.close()


class Desk:
    """A recorder at work, and what is stored of what it was told."""

    def __init__(self, database: Gated, store: Store, lease: Lease, settings: RecorderSettings) -> None:
        self.database, self.store, self.lease = database, store, lease
        self.hub = Hub(store)
        self.recorder = Recorder(store, self.hub, lease, clock=now, settings=settings)

    async def stored(self) -> list[str]:
        """Each stored event as its words, or its type where it has none."""
        found = await self.store.events(self.lease.run, 0, 10_000)
        assert [event.number for event in found] == list(range(1, len(found) + 1))
        return [words(event.body) for event in found]

    async def until_stored(self, count: int) -> list[str]:
        async with asyncio.timeout(10):
            while len(found := await self.stored()) < count:
                await asyncio.sleep(0.002)
        return found

    async def begin(self) -> None:
        """Say the first delta, so that the next has to wait."""
        await self.recorder.say([STARTED, said("first")])
        await self.until_stored(2)


def words(body: bytes) -> str:
    event = load_object(body) or {}
    return str(event.get("delta") or event["type"])


@asynccontextmanager
async def a_desk(
    folder: Path, *, interval: float = LONG, characters: int = 8_192, most: int = 262_144
) -> AsyncGenerator[Desk]:
    database = Gated(folder / "recto.db")
    await database.write(migrate)
    store = Store(database)
    settings = RecorderSettings(interval=interval, characters=characters, most=most)
    desk = Desk(database, store, await a_lease(store), settings)
    try:
        with desk.hub.writing(desk.lease.run):
            yield desk
    finally:
        database.gate.set()
        await desk.recorder.close()
        await store.close()


async def test_P7_the_first_delta_is_stored_at_once(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        await desk.recorder.say([STARTED, said("first")])
        assert await desk.until_stored(2) == ["TEXT_MESSAGE_START", "first"]


async def test_P7_a_write_just_before_does_not_make_the_first_delta_wait(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        await desk.recorder.write(RunChange(entered=True), [RunStarted(thread="t", run="r")])
        await desk.recorder.say([STARTED, said("first")])
        assert await desk.until_stored(3) == ["RUN_STARTED", "TEXT_MESSAGE_START", "first"]


async def test_P7_later_deltas_wait_for_the_interval_and_become_one_event(tmp_path: Path):
    async with a_desk(tmp_path, interval=0.5) as desk:
        await desk.begin()
        for piece in ("a", "b", "c"):
            await desk.recorder.say([said(piece)])
        assert await desk.stored() == ["TEXT_MESSAGE_START", "first"]
        assert await desk.until_stored(3) == ["TEXT_MESSAGE_START", "first", "abc"]


async def test_P7_deltas_that_have_grown_large_do_not_wait(tmp_path: Path):
    async with a_desk(tmp_path, characters=10) as desk:
        await desk.begin()
        await desk.recorder.say([said("12345")])
        await desk.recorder.say([said("67890")])
        assert (await desk.until_stored(3))[2:] == ["1234567890"]


async def test_P7_all_that_was_said_is_stored_in_its_order(tmp_path: Path):
    async with a_desk(tmp_path, interval=0.001, characters=20) as desk:
        pieces = [f"{number} " for number in range(300)]
        await desk.recorder.say([ReasoningStarted(message="t"), ReasoningSaid(message="t", delta="hm")])
        await desk.recorder.say([ReasoningEnded(message="t"), STARTED])
        for number, piece in enumerate(pieces):
            await desk.recorder.say([said(piece)])
            await asyncio.sleep(0.002 if number % 50 == 0 else 0)
        await desk.recorder.write(RunChange(), [TextEnded(message="m"), DONE])
        told = await desk.stored()
        begun = told.index("TEXT_MESSAGE_START")
        assert [one for one in told[:begun] if one.isupper()] == [
            *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "REASONING_END")
        ]
        assert "".join(told[begun + 1 : -2]) == "".join(pieces)
        assert told[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
        assert 3 < len(told) < 300


async def test_P7_a_write_carries_what_was_said_before_it_in_the_same_commit(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        await desk.begin()
        await desk.recorder.say([said(" and")])
        await desk.recorder.say([said(" last")])
        before = desk.database.writes
        message = AssistantMessage(id="m", time=now(), parts=(Text(text="first and last"),))
        written = await desk.recorder.write(RunChange(entries=(message,)), [TextEnded(message="m")])
        assert desk.database.writes == before + 1
        assert (await desk.stored())[2:] == [" and last", "TEXT_MESSAGE_END"]
        assert (written.last_event, written.last_seq) == (4, 1)
        assert [entry.id for entry in await desk.store.log_after(desk.lease.thread)] == ["m"]


async def test_P7_a_lost_lease_is_raised_at_the_next_word_and_nothing_is_published(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        heard = asyncio.create_task(hear(desk))
        await desk.begin()
        await lose(desk.store, desk.lease)
        with pytest.raises(LeaseLost):
            await desk.recorder.write(RunChange(), [said("never")])
        with pytest.raises(LeaseLost):
            await say_until_refused(desk.recorder)
        with pytest.raises(LeaseLost):
            await desk.recorder.write(RunChange(), [DONE])
        desk.hub.close()
        assert await heard == ["TEXT_MESSAGE_START", "first"] == await desk.stored()


async def say_until_refused(recorder: Recorder) -> None:
    for _ in range(1_000):
        await recorder.say([said("x" * 10_000)])
        await asyncio.sleep(0.002)


async def hear(desk: Desk) -> list[str]:
    """What a reader gets until the stream ends. Each event must be stored by the time it is heard."""
    heard: list[str] = []
    async with aclosing(desk.hub.follow(desk.lease.run, 0, last=None)) as stream:
        async for events in stream:
            stored = await desk.store.events(desk.lease.run, len(heard), 10_000)
            assert list(stored[: len(events)]) == list(events)
            heard += [words(event.body) for event in events]
    return heard


async def test_P7_nothing_is_heard_before_it_is_stored(tmp_path: Path):
    async with a_desk(tmp_path, interval=0.001) as desk:
        readers = [asyncio.create_task(hear(desk)) for _ in range(3)]
        await desk.recorder.say([STARTED])
        for number in range(100):
            await desk.recorder.say([said(f"{number} ")])
            await asyncio.sleep(0)
        await desk.recorder.write(RunChange(), [TextEnded(message="m"), DONE])
        told = await desk.stored()
        assert await asyncio.gather(*readers) == [told, told, told]


async def test_P7_a_commit_that_is_held_up_keeps_its_events_from_readers(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        reader = asyncio.create_task(hear(desk))
        desk.database.gate.clear()
        writing = asyncio.create_task(desk.recorder.write(RunChange(), [STARTED, DONE]))
        await asyncio.sleep(0.05)
        assert await desk.stored() == []
        assert not reader.done()
        desk.database.gate.set()
        await writing
        assert await reader == ["TEXT_MESSAGE_START", "RUN_FINISHED"]


async def test_P7_a_model_faster_than_the_store_has_to_wait_for_it(tmp_path: Path):
    async with a_desk(tmp_path, characters=10, most=100) as desk:
        desk.database.gate.clear()
        await desk.recorder.say([STARTED, said("x")])
        await asyncio.sleep(0.01)
        # One commit is under way; a hundred characters may wait behind it.
        await desk.recorder.say([said("y" * 100)])
        waits = asyncio.create_task(desk.recorder.say([said("z")]))
        await asyncio.sleep(0.05)
        assert not waits.done()
        desk.database.gate.set()
        await asyncio.wait_for(waits, 10)
        assert (await desk.until_stored(3))[1:] == ["x", "y" * 100 + "z"]


async def test_P7_breaking_off_a_model_that_waits_loses_nothing_it_said(tmp_path: Path):
    async with a_desk(tmp_path, characters=10, most=100) as desk:
        desk.database.gate.clear()
        await desk.recorder.say([STARTED, said("x")])
        await asyncio.sleep(0.01)
        waits = asyncio.create_task(desk.recorder.say([said("y" * 101)]))
        await asyncio.sleep(0.01)
        waits.cancel()
        await asyncio.wait([waits])
        desk.database.gate.set()
        await desk.recorder.write(RunChange(), [TextEnded(message="m")])
        assert "".join((await desk.stored())[1:-1]) == "x" + "y" * 101


async def test_P7_what_was_not_committed_when_the_recorder_closes_was_never_said(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        await desk.begin()
        await desk.recorder.say([said("too late")])
        await desk.recorder.close()
        await asyncio.sleep(0.02)
        assert await desk.stored() == ["TEXT_MESSAGE_START", "first"]


@pytest.mark.parametrize("events", [[], [said("a"), said("b")]], ids=["nothing", "two deltas"])
async def test_P7_a_write_tells_the_number_of_its_last_event(tmp_path: Path, events: Sequence[Event]):
    async with a_desk(tmp_path) as desk:
        await desk.begin()
        written = await desk.recorder.write(RunChange(), events)
        assert written.last_event == len(await desk.stored()) == 2 + bool(events)
