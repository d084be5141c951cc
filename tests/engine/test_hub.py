"""P7: every reader gets every event once and in order, however late or slow it is, and holds up nobody."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from recto.config.run_settings import HubSettings
from recto.conversation.events import RunFinished, TextContent, encode_event
from recto.engine.hub import Hub
from recto.store.ports import Lease, StoredEvent
from recto.store.store import Store
from tests.stored_runs import OWNER, a_lease, a_store, write_events
from tests.waiting import settle, wait_until

END = encode_event(RunFinished(thread="t", run="r"))[0]
QUICK = HubSettings(tail=8, page=5, look=0.01, heartbeat=5)


def body(number: int) -> bytes:
    return encode_event(TextContent(message="m", delta=str(number)))[0]


class CountingClock:
    """Events of a store, and how often they were asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = self.answered = 0

    async def list_after(self, run: str, after: int, limit: int, size: int) -> Sequence[StoredEvent]:
        self.reads += 1
        match = await self._store.events.list_after(run, after, limit, size)
        self.answered += 1
        return match

    async def has_run(self, run: str) -> bool:
        return await self._store.events.has_run(run)


class Air:
    """A run on the air: what is committed, and a hub for its readers."""

    def __init__(self, store: Store, lease: Lease, settings: HubSettings) -> None:
        self.store, self.lease = store, lease
        self.counted = CountingClock(store)
        self.hub = Hub(self.counted, settings)
        # By all readers together.
        self.heard: list[StoredEvent] = []

    async def commit(self, *bodies: bytes) -> list[StoredEvent]:
        """Commit events without a word to anybody."""
        last = await write_events(self.store, self.lease, bodies)
        return [StoredEvent(number=last - len(bodies) + 1 + place, body=one) for place, one in enumerate(bodies)]

    async def say(self, *bodies: bytes) -> None:
        self.hub.publish(self.lease.run, await self.commit(*bodies))

    async def hear(
        self, after: int = 0, *, last: int | None = None, gate: asyncio.Event | None = None
    ) -> list[StoredEvent]:
        """All a reader gets. One with a gate takes nothing more while it is closed."""
        received_events: list[StoredEvent] = []
        async with aclosing(self.hub.follow(self.lease.run, after, last=last)) as stream:
            async for events in stream:
                received_events += events
                self.heard += events
                if gate:
                    await gate.wait()
        return received_events

    def reader(self, after: int = 0, *, gate: asyncio.Event | None = None) -> asyncio.Task[list[StoredEvent]]:
        return asyncio.create_task(self.hear(after, gate=gate))

    async def wait_for_calls(self, times: int = 1) -> None:
        """Wait until readers were answered by the store so often, and wait for more."""
        await wait_until(lambda: self.counted.answered >= times, "readers to ask the store")
        await settle()

    async def has_heard(self, count: int) -> None:
        await wait_until(lambda: len(self.heard) >= count, f"{count} events to be heard")


@asynccontextmanager
async def on_air(folder: Path, settings: HubSettings) -> AsyncGenerator[Air]:
    async with a_store(folder) as store:
        yield Air(store, await a_lease(store), settings)


@pytest.fixture
async def air(tmp_path: Path) -> AsyncGenerator[Air]:
    async with on_air(tmp_path, QUICK) as air_in_use:
        yield air_in_use


def story(count: int) -> list[StoredEvent]:
    """Events 1 to count, the last of which ends the run."""
    bodies = [*[body(number) for number in range(1, count)], END]
    return [StoredEvent(number=number, body=one) for number, one in enumerate(bodies, start=1)]


def channels() -> int:
    gc.collect()
    return sum(type(one).__name__ == "_Channel" for one in gc.get_objects())


async def test_P7_readers_that_keep_up_do_not_ask_the_store(tmp_path: Path):
    async with on_air(tmp_path, HubSettings()) as air:
        with air.hub.open_writer(air.lease.run):
            reader = air.reader()
            await air.wait_for_calls()
            before = air.counted.reads
            for number in range(1, 50):
                await air.say(body(number))
                await air.has_heard(number)
            await air.say(END)
            assert await reader == story(50)
            assert air.counted.reads == before


@pytest.mark.parametrize("is_late", [False, True])
async def test_P7_a_reader_is_given_no_more_at_once_than_it_may_cost(tmp_path: Path, is_late: bool):
    async with on_air(tmp_path, HubSettings(bytes=1_000, look=0.01)) as air:
        bodies = [*[encode_event(TextContent(message="m", delta=str(at) * 300))[0] for at in range(9)], END]
        with air.hub.open_writer(air.lease.run):
            if is_late:
                await air.say(*bodies)
            stream = air.hub.follow(air.lease.run, 0, last=None)
            reading = asyncio.create_task(pages_of(stream))
            if not is_late:
                # It waits for what is published, all of it in one go.
                await air.wait_for_calls()
                await air.say(*bodies)
            pages = await reading
    assert [event.body for events in pages for event in events] == bodies
    assert [sum(len(event.body) for event in events[:-1]) for events in pages if len(events) > 1]
    assert max(sum(len(event.body) for event in events[:-1]) for events in pages) < 1_000


async def pages_of(stream: AsyncGenerator[Sequence[StoredEvent]]) -> list[Sequence[StoredEvent]]:
    return [events async for events in stream]


async def test_P7_an_event_larger_than_all_a_reader_may_cost_reaches_it(tmp_path: Path):
    async with on_air(tmp_path, HubSettings(bytes=100, look=60)) as air:
        large = [encode_event(TextContent(message="m", delta=letter * 5_000))[0] for letter in "ab"]
        with air.hub.open_writer(air.lease.run):
            reader = air.reader()
            await air.wait_for_calls()
            for one in (*large, END):
                await air.say(one)
            assert [event.body for event in await reader] == [*large, END]


async def test_P7_a_slow_reader_falls_behind_and_misses_nothing_and_holds_up_nobody(tmp_path: Path):
    async with on_air(tmp_path, HubSettings(tail=3, page=4)) as air:
        with air.hub.open_writer(air.lease.run):
            gate = asyncio.Event()
            slow, fast = air.reader(gate=gate), air.reader()
            for number in range(1, 60):
                await air.say(body(number))
            await air.say(END)
            assert await fast == story(60)
            assert not slow.done()
            gate.set()
        assert await slow == story(60)


async def test_P7_a_reader_that_has_gone_is_missed_by_nobody(air: Air):
    with air.hub.open_writer(air.lease.run):
        leaving_reader, stays = air.reader(), air.reader()
        await air.say(body(1))
        await air.has_heard(2)
        leaving_reader.cancel()
        await asyncio.gather(leaving_reader, return_exceptions=True)
        await air.say(body(2), END)
        assert await stays == story(3)
    assert leaving_reader.cancelled()


async def test_P7_a_reader_that_comes_back_at_any_number_gets_exactly_the_rest_in_the_same_bytes(tmp_path: Path):
    async with on_air(tmp_path, HubSettings(tail=4, page=3)) as air:
        whole = story(20)
        with air.hub.open_writer(air.lease.run):
            for number in range(1, 20):
                await air.say(body(number))
            readers = [air.reader(after) for after in range(20)]
            await air.has_heard(sum(range(20)))
            await air.say(END)
            assert await asyncio.gather(*readers) == [whole[after:] for after in range(20)]
        # Behind the end there is nothing to wait for.
        for after in (*range(21), 99):
            assert await air.hear(after, last=20) == whole[after:]


async def test_P7_a_run_at_work_elsewhere_is_looked_for_in_the_store(air: Air):
    reader = air.reader()
    await air.wait_for_calls()
    await air.commit(body(1))
    await air.has_heard(1)
    await air.commit(body(2), END)
    assert await reader == story(3)


async def test_P7_a_run_that_goes_on_elsewhere_is_followed_there(air: Air):
    with air.hub.open_writer(air.lease.run):
        reader = air.reader()
        await air.say(body(1))
        await air.has_heard(1)
    # Its worker here lost it; whoever has it now publishes in another process.
    await air.commit(body(2), END)
    assert await reader == story(3)


async def test_P7_what_was_committed_and_never_published_is_not_skipped(air: Air):
    with air.hub.open_writer(air.lease.run):
        reader = air.reader()
        await air.say(body(1), body(2))
        await air.has_heard(2)
        await air.commit(body(3), body(4))
        await air.say(body(5), END)
        assert await reader == story(6)
        assert await air.hear(after=1) == story(6)[1:]


async def test_P7_a_silent_stream_has_a_heart_that_beats(tmp_path: Path):
    async with on_air(tmp_path, HubSettings(look=0.005, heartbeat=0.02)) as air:
        with air.hub.open_writer(air.lease.run):
            async with aclosing(air.hub.follow(air.lease.run, 0, last=None)) as stream:
                assert [list(await anext(stream)) for _ in range(3)] == [[], [], []]
                await air.say(body(1))
                assert await anext(stream) == story(2)[:1]
        # Nobody writes here: the store is asked more often, the heart beats all the same.
        async with aclosing(air.hub.follow(air.lease.run, 1, last=None)) as stream:
            assert list(await anext(stream)) == []
            assert air.counted.reads > 3


async def test_P7_closing_ends_all_streams_and_those_that_come_after(air: Air):
    with air.hub.open_writer(air.lease.run):
        readers = [air.reader() for _ in range(3)]
        await air.say(body(1))
        await air.has_heard(3)
        air.hub.close()
        assert await asyncio.gather(*readers) == [story(2)[:1]] * 3
        assert await air.hear() == []


@pytest.mark.full
async def test_P7_nothing_is_kept_of_a_run_once_readers_and_writers_have_left(air: Air):
    before = channels()
    with air.hub.open_writer(air.lease.run):
        readers = [air.reader() for _ in range(3)]
        leaving_reader = air.reader()
        await air.say(body(1))
        await air.has_heard(4)
        assert channels() == before + 1
        leaving_reader.cancel()
        await air.say(body(2), END)
        await asyncio.gather(*readers, leaving_reader, return_exceptions=True)
        assert channels() == before + 1
    assert channels() == before
    await air.hear(last=3)
    air.hub.publish(air.lease.run, story(3))
    assert channels() == before


async def test_P7_a_reader_of_many_stored_events_gets_them_all_though_the_worker_is_silent(tmp_path: Path):
    async with on_air(tmp_path, HubSettings(tail=8, page=5, look=60, heartbeat=60)) as air:
        await air.commit(*[body(number) for number in range(1, 18)])
        with air.hub.open_writer(air.lease.run):
            reader = air.reader()
            await air.has_heard(17)
            await air.say(END)
            assert await reader == story(18)


async def test_P7_who_listens_before_a_run_is_admitted_needs_nothing_of_the_store(tmp_path: Path):
    async with on_air(tmp_path, HubSettings(look=60, heartbeat=60)) as air:
        with air.hub.open_listener(air.lease.run) as listener, air.hub.open_writer(air.lease.run):
            await air.say(body(1))
            await air.say(END)
            received_events = [
                event async for events in air.hub.follow_listener(listener, 0, is_new=True) for event in events
            ]
        assert received_events == story(2)
        assert air.counted.reads == 0


async def test_P17_who_reads_a_run_that_is_deleted_elsewhere_is_not_left_waiting(tmp_path: Path):
    async with on_air(tmp_path, HubSettings(look=0.005, heartbeat=0.02)) as air:
        await air.say(body(1))
        reader = air.reader()
        await settle()
        # Another process knows nothing of our readers.
        await air.store.threads.delete(OWNER, air.lease.thread)
        assert [event.number for event in await reader] in ([1], [])


class Fading:
    """Events of a run that are cleaned away once some of them were read."""

    def __init__(self, stored_events: Sequence[StoredEvent]) -> None:
        self._kept = list(stored_events)

    async def list_after(self, run: str, after: int, limit: int, size: int) -> Sequence[StoredEvent]:
        stored_events, self._kept = self._kept, []
        return stored_events

    async def has_run(self, run: str) -> bool:
        return True


async def test_P7_who_reads_an_ended_run_is_not_left_waiting_when_its_events_are_cleaned_away():
    hub = Hub(Fading(story(9)[:2]), QUICK)
    received_events = [event async for events in hub.follow("r", 0, last=9) for event in events]
    assert received_events == story(9)[:2]


async def test_P7_the_end_of_a_run_is_not_missed_between_its_commit_and_its_publication(tmp_path: Path):
    async with on_air(tmp_path, HubSettings(look=60, heartbeat=60)) as air:
        with air.hub.open_writer(air.lease.run), air.hub.open_listener(air.lease.run):
            await air.say(body(1))
            await air.commit(END)
            assert await air.hear(last=2) == story(2)
