"""Reads: logs, events, snapshots and pages of messages, for their owner only."""

import asyncio
from dataclasses import replace

import pytest

from recto.conversation.json import dump
from recto.conversation.log import RolledBack
from recto.errors import NotFound, WireError
from recto.store.ports import RunChange, RunEnding
from recto.store.store import Store
from recto.store.threads.history import HistoryQuery
from recto.store.threads.messages import MessagesQuery
from tests.store.suite.samples import NODE, admission, admit, at, begin, events, lease_of, message_of
from tests.store.suite.stored_entries import every_kind_of_entry

ROUNDS, READERS = 15, 4


class ReadSuite:
    async def test_every_kind_of_entry_survives_a_round_trip(self, store: Store):
        lease = await begin(store, "r1")
        entries = every_kind_of_entry()
        await store.runs.record(lease, RunChange(entries=entries), at(1))
        rows = [replace(entry, seq=seq) for seq, entry in enumerate(entries, start=1)]
        for result, expected in zip(await store.log.read_after("thread-1"), rows, strict=True):
            assert result == expected

    async def test_a_log_is_read_after_a_number_or_up_to_an_entry(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=[message_of(f"m{number}") for number in range(1, 6)]), at(1))
        assert [entry.id for entry in await store.log.read_after("thread-1", 3)] == ["m4", "m5"]
        assert list(await store.log.read_after("thread-1", 5)) == []
        assert list(await store.log.read_after("unknown")) == []
        assert [entry.id for entry in await store.log.read_up_to("thread-1", 2)] == ["m1", "m2"]
        assert [entry.id for entry in await store.log.read_up_to_entry("thread-1", "m3")] == ["m1", "m2", "m3"]
        assert list(await store.log.read_up_to_entry("thread-1", "unknown")) == []

    async def test_events_are_read_a_page_at_a_time(self, store: Store):
        lease = await begin(store, "r1")
        other = await begin(store, "r2", "thread-2")
        await store.runs.record(lease, events(b"1", b"2", b"3", b"4", b"5"), at(1))
        await store.runs.record(other, events(b"other"), at(1))
        pages = [await store.events.list_after(lease.run, after, limit=2) for after in (0, 2, 4, 5)]
        assert [[event.body for event in page] for page in pages] == [[b"1", b"2"], [b"3", b"4"], [b"5"], []]
        assert list(await store.events.list_after("unknown", after=0, limit=2)) == []

    async def test_bodies_of_events_are_stored_exactly(self, store: Store):
        lease = await begin(store, "r1")
        bodies = [b"", bytes(range(256)), b'{ "n": 1.0e3 }', "四 😀".encode(), b"x" * 1_000_000]
        await store.runs.record(lease, RunChange(events=bodies), at(1))
        assert [event.body for event in await store.events.list_after(lease.run, after=0, limit=9)] == bodies

    async def test_P15_a_snapshot_has_the_row_events_and_log_of_a_run(self, store: Store):
        before = await begin(store, "r0")
        await store.runs.record(before, RunChange(entries=[message_of("m0")], ending=RunEnding(outcome="done")), at(1))
        waiting = await admit(store, "r1")
        result = await store.events.read_snapshot(waiting)
        assert (result.run, list(result.events), result.last, result.is_over) == (waiting, [], 0, False)
        assert ([entry.id for entry in result.log], result.has_input) == (["m0"], False)
        (run,) = await store.runs.claim(NODE, at(1), limit=1)
        bodies = [b"%d" % number for number in range(2_500)]
        await store.runs.record(run.lease, RunChange(entries=[message_of("m1")], entered=True, events=bodies), at(2))
        result = await store.events.read_snapshot(waiting)
        assert [event.body for event in result.events] == bodies
        assert ([entry.id for entry in result.log], result.has_input, result.last) == (["m0", "m1"], True, 2_500)

    async def test_P15_the_snapshot_of_an_ended_run_has_the_log_as_it_left_it(self, store: Store):
        for number in (1, 2):
            lease = await begin(store, f"r{number}")
            change = RunChange(entries=[message_of(f"m{number}")], events=[b"end"], ending=RunEnding(outcome="done"))
            await store.runs.record(lease, change, at(number))
        result = await store.events.read_snapshot(await store.runs.find("ann", "r1"))
        assert ([entry.id for entry in result.log], result.is_over, result.last) == (["m1"], True, 1)
        await store.threads.delete("ann", "thread-1")
        with pytest.raises(NotFound):
            await store.events.read_snapshot(result.run)

    async def test_P17_visible_messages_are_read_in_pages(self, store: Store):
        lease = await begin(store, "r1")
        hidden = [message_of("m2"), RolledBack(id="b", time=at(1), to="m2")]
        many = [message_of(f"n{number}") for number in range(600)]
        await store.runs.record(lease, RunChange(entries=[message_of("m1"), *hidden, *many]), at(1))
        request = MessagesQuery(thread="thread-1", since=None, limit=500, most_bytes=2**20)
        first = await store.messages.read_page("ann", request)
        rest = await store.messages.read_page("ann", replace(request, since=first.next))
        ids = [entry.id for entry in (*first.entries, *rest.entries)]
        assert (first.next, rest.next, ids) == ("n498", None, ["m1", *[entry.id for entry in many]])
        small = await store.messages.read_page("ann", replace(request, most_bytes=1))
        assert ([entry.id for entry in small.entries], small.next) == (["m1"], "m1")

    async def test_P17_a_page_starts_after_a_visible_message_of_an_own_thread(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(
            lease, RunChange(entries=[message_of("m1"), RolledBack(id="b", time=at(1), to="m1")]), at(1)
        )
        request = MessagesQuery(thread="thread-1", since="m1", limit=5, most_bytes=2**20)
        with pytest.raises(WireError, match="no visible message 'm1'"):
            await store.messages.read_page("ann", request)
        with pytest.raises(NotFound):
            await store.messages.read_page("bob", request)

    async def test_P13_a_message_is_listed_once_while_its_run_starts(self, store: Store):
        async def write() -> None:
            for number in range(ROUNDS):
                words = {"id": f"m{number}", "role": "user", "content": "Hello"}
                body = dump({"threadId": "t", "runId": "r", "messages": [words]})
                await store.runs.admit(admission(f"r{number}", input=body))
                result.append(f"m{number}")
                (run,) = await store.runs.claim(NODE, at(0), limit=1)
                await store.runs.record(
                    lease_of(run), RunChange(entries=[message_of(f"m{number}")], entered=True), at(0)
                )
                await store.runs.record(lease_of(run), RunChange(ending=RunEnding(outcome="success")), at(0))

        async def read() -> None:
            while not writing.done():
                before = len(result)
                day = await store.messages.read_day("ann", HistoryQuery())
                visible = [*(one.id for one in day.messages), *(one.message.id for one in day.queued)]
                assert visible == [f"m{number}" for number in range(len(visible))]
                assert len(visible) >= before

        result: list[str] = []
        writing = asyncio.create_task(write())
        await asyncio.gather(writing, *[read() for _ in range(READERS)])
