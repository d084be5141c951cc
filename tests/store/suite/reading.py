"""What a store promises of reading: what was written comes back as it was, to its owner only."""

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
from tests.store.suite.samples import NODE, admission, admit, at, begin, events, lease_of, said
from tests.store.suite.stored_entries import every_kind_of_entry

ROUNDS, READERS = 15, 4


class ReadingSuite:
    async def test_a_run_of_somebody_else_is_not_found(self, store: Store):
        run = await admit(store, "r1")
        for id in (run.id, "r1", "unknown"):
            with pytest.raises(NotFound, match=id):
                await store.runs.find("bob", id)

    async def test_every_kind_of_entry_comes_back_as_it_was(self, store: Store):
        lease = await begin(store, "r1")
        entries = every_kind_of_entry()
        await store.runs.record(lease, RunChange(entries=entries), at(1))
        stored = [replace(entry, seq=seq) for seq, entry in enumerate(entries, start=1)]
        for found, wanted in zip(await store.log.read_after("thread-1"), stored, strict=True):
            assert found == wanted

    async def test_a_log_is_read_from_behind_a_number_or_up_to_an_entry(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=[said(f"m{number}") for number in range(1, 6)]), at(1))
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

    async def test_bodies_of_events_are_kept_to_the_byte(self, store: Store):
        lease = await begin(store, "r1")
        bodies = [b"", bytes(range(256)), b'{ "n": 1.0e3 }', "四 😀".encode(), b"x" * 1_000_000]
        await store.runs.record(lease, RunChange(events=bodies), at(1))
        assert [event.body for event in await store.events.list_after(lease.run, after=0, limit=9)] == bodies

    async def test_P15_a_run_so_far_is_its_row_its_events_and_its_log_as_of_one_moment(self, store: Store):
        before = await begin(store, "r0")
        await store.runs.record(before, RunChange(entries=[said("m0")], ending=RunEnding(outcome="done")), at(1))
        waiting = await admit(store, "r1")
        found = await store.events.read_snapshot(waiting)
        assert (found.run, list(found.events), found.last, found.is_over) == (waiting, [], 0, False)
        assert ([entry.id for entry in found.log], found.has_input) == (["m0"], False)
        (run,) = await store.runs.claim(NODE, at(1), limit=1)
        bodies = [b"%d" % number for number in range(2_500)]
        await store.runs.record(run.lease, RunChange(entries=[said("m1")], entered=True, events=bodies), at(2))
        found = await store.events.read_snapshot(waiting)
        assert [event.body for event in found.events] == bodies
        assert ([entry.id for entry in found.log], found.has_input, found.last) == (["m0", "m1"], True, 2_500)

    async def test_P15_a_run_that_has_ended_has_the_log_it_left(self, store: Store):
        for number in (1, 2):
            lease = await begin(store, f"r{number}")
            change = RunChange(entries=[said(f"m{number}")], events=[b"end"], ending=RunEnding(outcome="done"))
            await store.runs.record(lease, change, at(number))
        found = await store.events.read_snapshot(await store.runs.find("ann", "r1"))
        assert ([entry.id for entry in found.log], found.is_over, found.last) == (["m1"], True, 1)
        await store.threads.delete("ann", "thread-1")
        with pytest.raises(NotFound):
            await store.events.read_snapshot(found.run)

    async def test_P17_messages_in_view_are_read_a_page_at_a_time(self, store: Store):
        lease = await begin(store, "r1")
        hidden = [said("m2"), RolledBack(id="b", time=at(1), to="m2")]
        many = [said(f"n{number}") for number in range(600)]
        await store.runs.record(lease, RunChange(entries=[said("m1"), *hidden, *many]), at(1))
        asked = MessagesQuery(thread="thread-1", since=None, limit=500, most_bytes=2**20)
        first = await store.messages.read_page("ann", asked)
        rest = await store.messages.read_page("ann", replace(asked, since=first.next))
        ids = [entry.id for entry in (*first.entries, *rest.entries)]
        assert (first.next, rest.next, ids) == ("n498", None, ["m1", *[entry.id for entry in many]])
        small = await store.messages.read_page("ann", replace(asked, most_bytes=1))
        assert ([entry.id for entry in small.entries], small.next) == (["m1"], "m1")

    async def test_P17_a_page_is_of_the_owner_and_behind_a_message_in_view(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=[said("m1"), RolledBack(id="b", time=at(1), to="m1")]), at(1))
        asked = MessagesQuery(thread="thread-1", since="m1", limit=5, most_bytes=2**20)
        with pytest.raises(WireError, match="no visible message 'm1'"):
            await store.messages.read_page("ann", asked)
        with pytest.raises(NotFound):
            await store.messages.read_page("bob", asked)

    async def test_P13_a_message_is_in_history_once_while_its_run_enters_the_log(self, store: Store):
        async def write() -> None:
            for number in range(ROUNDS):
                words = {"id": f"m{number}", "role": "user", "content": "Hello"}
                sent = dump({"threadId": "t", "runId": "r", "messages": [words]})
                await store.runs.admit(admission(f"r{number}", input=sent))
                admitted.append(f"m{number}")
                (run,) = await store.runs.claim(NODE, at(0), limit=1)
                await store.runs.record(lease_of(run), RunChange(entries=[said(f"m{number}")], entered=True), at(0))
                await store.runs.record(lease_of(run), RunChange(ending=RunEnding(outcome="success")), at(0))

        async def read() -> None:
            while not writing.done():
                before = len(admitted)
                day = await store.messages.read_day("ann", HistoryQuery())
                shown = [*(one.id for one in day.messages), *(one.message.id for one in day.queued)]
                assert shown == [f"m{number}" for number in range(len(shown))]
                assert len(shown) >= before

        admitted: list[str] = []
        writing = asyncio.create_task(write())
        await asyncio.gather(writing, *[read() for _ in range(READERS)])
