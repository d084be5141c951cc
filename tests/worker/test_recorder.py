"""P7: what a run says is merged, numbered, committed, then published; never in another order."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from recto.config.run_settings import RecorderSettings
from recto.conversation.events import (
    Event,
    ReasoningContent,
    ReasoningEnded,
    ReasoningStarted,
    RunFinished,
    RunStarted,
    TextContent,
    TextEnded,
    TextStarted,
)
from recto.conversation.json import load_object
from recto.conversation.messages import AssistantMessage, Text
from recto.engine.hub import Hub
from recto.errors import LeaseLost
from recto.store.database.opening import migrate
from recto.store.ports import Lease, RunChange
from recto.store.store import Store
from recto.worker.recorder import Recorder
from tests.files.loop_clock import LoopClock
from tests.stored_runs import a_lease, lose, now
from tests.waiting import settle
from tests.worker.gated_database import Gated

LONG = 60.0
STARTED = TextStarted(message="m")
DONE = RunFinished(thread="t", run="r")


def text_event(words: str) -> TextContent:
    return TextContent(message="m", delta=words)


class RecordedRun:
    """A run with its recorder and the stored events."""

    def __init__(self, database: Gated, store: Store, lease: Lease, settings: RecorderSettings) -> None:
        self.database, self.store, self.lease = database, store, lease
        self.hub = Hub(store.events)
        self.recorder = Recorder(store, self.hub, lease, clock=now, settings=settings)

    async def event_names(self) -> list[str]:
        """Return each stored event as its text, or as its type if it has none."""
        match = await self.store.events.list_after(self.lease.run, 0, 10_000)
        assert [event.number for event in match] == list(range(1, len(match) + 1))
        return [words(event.body) for event in match]

    async def until_stored(self, count: int) -> list[str]:
        """Wait until so many events are published. Return their names."""
        event_count = 0
        async with asyncio.timeout(60), aclosing(self.hub.follow(self.lease.run, 0, last=None)) as stream:
            async for events in stream:
                event_count += len(events)
                if event_count >= count:
                    break
        return await self.event_names()

    async def begin(self) -> None:
        """Emit the first delta, so that the next one waits."""
        await self.recorder.emit([STARTED, text_event("first")])
        await self.until_stored(2)


def words(body: bytes) -> str:
    event = load_object(body) or {}
    return str(event.get("delta") or event["type"])


@asynccontextmanager
async def a_recorded_run(
    folder: Path, *, interval: float = LONG, characters: int = 8_192, most: int = 262_144
) -> AsyncGenerator[RecordedRun]:
    database = Gated(folder / "recto.db")
    await database.write(migrate)
    store = Store(database)
    settings = RecorderSettings(interval=interval, characters=characters, most=most)
    run = RecordedRun(database, store, await a_lease(store), settings)
    try:
        with run.hub.open_writer(run.lease.run):
            yield run
    finally:
        database.gate.set()
        await run.recorder.close()
        await store.close()


@pytest.fixture
async def run(tmp_path: Path) -> AsyncGenerator[RecordedRun]:
    async with a_recorded_run(tmp_path) as run:
        yield run


async def test_P7_the_first_delta_is_stored_at_once(run: RecordedRun):
    await run.recorder.emit([STARTED, text_event("first")])
    assert await run.until_stored(2) == ["TEXT_MESSAGE_START", "first"]


async def test_P7_a_write_just_before_does_not_make_the_first_delta_wait(run: RecordedRun):
    await run.recorder.write(RunChange(entered=True), [RunStarted(thread="t", run="r")])
    await run.recorder.emit([STARTED, text_event("first")])
    assert await run.until_stored(3) == ["RUN_STARTED", "TEXT_MESSAGE_START", "first"]


async def test_P7_later_deltas_wait_for_the_interval_and_become_one_event(
    run: RecordedRun, monkeypatch: pytest.MonkeyPatch
):
    clock = LoopClock(monkeypatch)
    await run.begin()
    for piece in ("a", "b", "c"):
        await run.recorder.emit([text_event(piece)])
    clock.advance(LONG - 1)
    await settle()
    assert await run.event_names() == ["TEXT_MESSAGE_START", "first"]
    clock.advance(1)
    assert await run.until_stored(3) == ["TEXT_MESSAGE_START", "first", "abc"]


async def test_P7_deltas_that_have_grown_large_do_not_wait(tmp_path: Path):
    async with a_recorded_run(tmp_path, characters=10) as run:
        await run.begin()
        await run.recorder.emit([text_event("12345")])
        await run.recorder.emit([text_event("67890")])
        assert (await run.until_stored(3))[2:] == ["1234567890"]


async def test_P7_all_that_was_said_is_stored_in_its_order(tmp_path: Path):
    async with a_recorded_run(tmp_path, interval=0.001, characters=20) as run:
        pieces = [f"{number} " for number in range(300)]
        await run.recorder.emit([ReasoningStarted(message="t"), ReasoningContent(message="t", delta="hm")])
        await run.recorder.emit([ReasoningEnded(message="t"), STARTED])
        for number, piece in enumerate(pieces):
            await run.recorder.emit([text_event(piece)])
            await (run.until_stored(number // 25) if number % 50 == 0 else settle(1))
        await run.recorder.write(RunChange(), [TextEnded(message="m"), DONE])
        event_names = await run.event_names()
        start_place = event_names.index("TEXT_MESSAGE_START")
        assert [one for one in event_names[:start_place] if one.isupper()] == [
            *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_END", "REASONING_END")
        ]
        assert "".join(event_names[start_place + 1 : -2]) == "".join(pieces)
        assert event_names[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
        assert 3 < len(event_names) < 300


async def test_P7_a_write_carries_what_was_said_before_it_in_the_same_commit(run: RecordedRun):
    await run.begin()
    await run.recorder.emit([text_event(" and")])
    await run.recorder.emit([text_event(" last")])
    before = run.database.writes
    message = AssistantMessage(id="m", time=now(), parts=(Text(text="first and last"),))
    write_result = await run.recorder.write(RunChange(entries=(message,)), [TextEnded(message="m")])
    assert run.database.writes == before + 1
    assert (await run.event_names())[2:] == [" and last", "TEXT_MESSAGE_END"]
    assert (write_result.last_event, write_result.last_seq) == (4, 1)
    assert [entry.id for entry in await run.store.log.read_after(run.lease.thread)] == ["m"]


async def test_P7_a_lost_lease_is_raised_at_the_next_word_and_nothing_is_published(run: RecordedRun):
    listener = asyncio.create_task(hear(run))
    await run.begin()
    await lose(run.store, run.lease)
    with pytest.raises(LeaseLost):
        await run.recorder.write(RunChange(), [text_event("never")])
    with pytest.raises(LeaseLost):
        await say_until_refused(run.recorder)
    with pytest.raises(LeaseLost):
        await run.recorder.write(RunChange(), [DONE])
    run.hub.close()
    assert await listener == ["TEXT_MESSAGE_START", "first"] == await run.event_names()


async def say_until_refused(recorder: Recorder) -> None:
    for _ in range(1_000):
        await recorder.emit([text_event("x" * 10_000)])
        await settle()


async def hear(run: RecordedRun) -> list[str]:
    """Return the texts that a subscriber receives, and check that each event is stored by then."""
    texts: list[str] = []
    async with aclosing(run.hub.follow(run.lease.run, 0, last=None)) as stream:
        async for events in stream:
            stored_events = await run.store.events.list_after(run.lease.run, len(texts), 10_000)
            assert list(stored_events[: len(events)]) == list(events)
            texts += [words(event.body) for event in events]
    return texts


async def test_P7_nothing_is_heard_before_it_is_stored(tmp_path: Path):
    async with a_recorded_run(tmp_path, interval=0.001) as run:
        readers = [asyncio.create_task(hear(run)) for _ in range(3)]
        await run.recorder.emit([STARTED])
        for number in range(100):
            await run.recorder.emit([text_event(f"{number} ")])
            await settle(1)
        await run.recorder.write(RunChange(), [TextEnded(message="m"), DONE])
        event_names = await run.event_names()
        assert await asyncio.gather(*readers) == [event_names, event_names, event_names]


async def test_P7_a_commit_that_is_held_up_keeps_its_events_from_readers(run: RecordedRun):
    reader = asyncio.create_task(hear(run))
    run.database.gate.clear()
    writing = asyncio.create_task(run.recorder.write(RunChange(), [STARTED, DONE]))
    await settle()
    assert await run.event_names() == []
    assert not reader.done()
    run.database.gate.set()
    await writing
    assert await reader == ["TEXT_MESSAGE_START", "RUN_FINISHED"]


async def test_P7_a_model_faster_than_the_store_has_to_wait_for_it(tmp_path: Path):
    async with a_recorded_run(tmp_path, characters=10, most=100) as run:
        run.database.gate.clear()
        await run.recorder.emit([STARTED, text_event("x")])
        await settle()
        # One commit is under way; a hundred characters may wait behind it.
        await run.recorder.emit([text_event("y" * 100)])
        waits = asyncio.create_task(run.recorder.emit([text_event("z")]))
        await settle()
        assert not waits.done()
        run.database.gate.set()
        await waits
        assert (await run.until_stored(3))[1:] == ["x", "y" * 100 + "z"]


async def test_P7_breaking_off_a_model_that_waits_loses_nothing_it_said(tmp_path: Path):
    async with a_recorded_run(tmp_path, characters=10, most=100) as run:
        run.database.gate.clear()
        await run.recorder.emit([STARTED, text_event("x")])
        await settle()
        waits = asyncio.create_task(run.recorder.emit([text_event("y" * 101)]))
        await settle()
        waits.cancel()
        await asyncio.wait([waits])
        run.database.gate.set()
        await run.recorder.write(RunChange(), [TextEnded(message="m")])
        assert "".join((await run.event_names())[1:-1]) == "x" + "y" * 101


async def test_P7_what_was_not_committed_when_the_recorder_closes_was_never_said(run: RecordedRun):
    await run.begin()
    await run.recorder.emit([text_event("too late")])
    await run.recorder.close()
    await settle()
    assert await run.event_names() == ["TEXT_MESSAGE_START", "first"]


@pytest.mark.parametrize("events", [[], [text_event("a"), text_event("b")]], ids=["nothing", "two deltas"])
async def test_P7_a_write_returns_the_number_of_its_last_event(run: RecordedRun, events: Sequence[Event]):
    await run.begin()
    result = await run.recorder.write(RunChange(), events)
    assert result.last_event == len(await run.event_names()) == 2 + bool(events)
