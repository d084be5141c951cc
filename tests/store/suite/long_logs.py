"""Long logs: the visible end is read, the rest is summed up, ids are looked up."""

from dataclasses import replace
from datetime import timedelta

from recto.conversation.log import Entry, SkillChanged
from recto.conversation.messages import UnreadMessages
from recto.store.log.logs import EndQuery, LogEnd, MissingCounts
from recto.store.ports import EntryCounts, Lease, RunChange
from recto.store.store import Store
from recto.store.threads.threads import ForkOptions
from tests.page.talk import asks, result, says, user
from tests.store.suite.samples import at, begin

QUERY = EndQuery(thread="thread-1", counter="mine", history=4)


async def begin_long(store: Store, *more: Entry, tokens: int | None = 3) -> Lease:
    turns = [
        (user(f"u{n}"), asks(f"a{n}", f"c{n}", text='as "id":"c99"'), result(f"r{n}", f"c{n}"), says(f"s{n}"))
        for n in range(10)
    ]
    entries = [SkillChanged(id="skill", skill="bazi"), *[entry for turn in turns for entry in turn], *more]
    stamped = [replace(entry, time=at(1) + timedelta(seconds=place)) for place, entry in enumerate(entries)]
    lease, counts = await begin(store, "r1"), EntryCounts(counter="mine", tokens=[tokens] * len(stamped))
    await store.runs.record(lease, RunChange(entries=stamped, counts=counts), at(2))
    return lease


def unread(end: object) -> list[tuple[str, str, int, int]]:
    assert isinstance(end, LogEnd)
    return [(one.first, one.id, one.count, one.tokens) for one in end.entries if isinstance(one, UnreadMessages)]


class LongLogSuite:
    async def test_S2_messages_outside_the_window_are_summed_up(self, store: Store):
        await begin_long(store)
        end = await store.log.read_end(QUERY)
        assert unread(end) == [("u0", "s7", 32, 96)]
        assert isinstance(end, LogEnd)
        assert [entry.id for entry in end.entries[:3]] == ["s7", "skill", "u8"]
        assert end.entries[0].time == at(1) + timedelta(seconds=32)
        # A fork copies the counts.
        await store.threads.fork("ann", ForkOptions(thread="thread-1", id="thread-2", now=at(3)))
        assert unread(await store.log.read_end(replace(QUERY, thread="thread-2"))) == unread(end)

    async def test_missing_token_counts_are_listed_and_stored(self, store: Store):
        await begin_long(store, tokens=None)
        end = await store.log.read_end(QUERY)
        assert end == MissingCounts(upto=33)
        result = await store.log.list_uncounted("thread-1", "mine", after=0, upto=33)
        assert [entry.id for entry in result[:2]] == ["u0", "a0"]
        assert len(result) == 32
        await store.log.set_tokens("thread-1", "mine", {entry.id: 5 for entry in result})
        assert list(await store.log.list_uncounted("thread-1", "mine", after=0, upto=33)) == []
        assert unread(await store.log.read_end(QUERY)) == [("u0", "s7", 32, 160)]
        assert await store.log.read_end(replace(QUERY, counter="another")) == MissingCounts(upto=33)

    async def test_P3_existing_ids_and_calls_are_found(self, store: Store):
        await begin_long(store)
        assert await store.log.find_ids("thread-1", ["u3", "skill", "nobody"]) == {"u3", "skill"}
        assert await store.log.find_ids("thread-2", ["u3"]) == frozenset()
        requests = [("c3", 41), ("c3", 12), ("c", 41), ("c99", 41), ('"', 41)]
        assert [await store.log.has_call("thread-1", upto, call) for call, upto in requests] == [True, *[False] * 4]
