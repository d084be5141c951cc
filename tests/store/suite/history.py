"""History by day, model calls, and damage of calls (X1)."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from hashlib import sha256

import pytest

from recto.conversation.json import dump
from recto.conversation.log import Compacted, Entry, Interrupted, ReplyEnded, RolledBack, Undone
from recto.conversation.messages import AssistantMessage, ReasoningMessage, Text, ToolMessage
from recto.errors import Conflict, NotFound
from recto.store.ports import CallEnd, CallStart, RunChange, RunEnding
from recto.store.store import Store
from recto.store.threads.cleanup import Retention
from recto.store.threads.history import HistoryDay, HistoryQuery
from tests.store.suite.calls import body_of, call, segment
from tests.store.suite.samples import PLENTY, admission, admit, at, begin, message_of

EAST = timezone(timedelta(hours=9))


class HistorySuite:
    async def test_history_is_read_backwards_by_day(self, store: Store):
        assert await store.messages.read_day("ann", HistoryQuery()) == HistoryDay()
        await write(store, *(on(f"m{day}", day) for day in (1, 1, 3, 9, 9, 9)))
        results = [await day_of(store, before) for before in (None, 9, 5, 3, 1)]
        expected = [
            (9, True, ["m9-3", "m9-4", "m9-5"]),
            (3, True, ["m3-2"]),
            (3, True, ["m3-2"]),
            (1, False, ["m1-0", "m1-1"]),
            (None, False, list[str]()),
        ]
        assert results == expected

    async def test_queued_messages_belong_to_their_day_and_have_their_future_id(self, store: Store):
        await write(store, on("m1", 1))
        for name, id, day in (("w1", "new", 2), ("w2", "m1", 3), ("w3", "new", 3)):
            body = dump({"threadId": "t", "runId": name, "messages": [{"id": id, "role": "user", "content": name}]})
            waits = admission(name, input=body)
            await store.runs.admit(replace(waits, created=datetime(2026, 3, day, 12, tzinfo=UTC)))
        third, second, first = [
            await store.messages.read_day("ann", HistoryQuery(before=date(2026, 3, day))) for day in (9, 3, 2)
        ]
        days = [(one.day.day if one.day else 0, one.has_more) for one in (third, second, first)]
        assert days == [(3, True), (2, True), (1, False)]
        assert [one.message.id for one in second.queued] == ["new"]
        assert [(one.run, one.message.id == one.task) for one in third.queued] == [("w2", True), ("w3", True)]
        assert (third.messages, second.messages, first.queued) == ((), (), ())
        assert await store.messages.list_queued("thread-1") == (*second.queued, *third.queued)
        # A limit of bytes leaves the first.
        queued = [await store.messages.list_queued("thread-1", most * len(body)) for most in (2, 1)]
        assert [[one.run for one in some] for some in queued] == [["w1", "w2"], ["w1"]]

    async def test_incomplete_replies_have_a_status(self, store: Store):
        await write(
            store,
            ReplyEnded(id="e", time=at(1), message="a1", finish="length"),
            AssistantMessage(id="a1", time=at(1), parts=(Text(text="Once"),)),
            AssistantMessage(id="a2", time=at(2), parts=(Text(text="upon"),)),
            Interrupted(id="i", time=at(2), message="a2", reason="broken off"),
        )
        assert (await store.messages.read_day("ann", HistoryQuery())).statuses == {"a1": "length", "a2": "interrupted"}

    async def test_days_depend_on_the_time_zone(self, store: Store):
        await write(store, replace(message_of("late"), time=datetime(2026, 3, 1, 20, tzinfo=UTC)))
        for zone, day in ((UTC, 1), (EAST, 2)):
            result = await store.messages.read_day("ann", HistoryQuery(zone=zone))
            assert (result.day, [message.id for message in result.messages]) == (date(2026, 3, day), ["late"])
        assert (await store.messages.read_day("ann", HistoryQuery(before=date(2026, 3, 2), zone=EAST))).day is None

    async def test_messages_keep_the_order_of_the_log(self, store: Store):
        times = (5, 3, 3, 9)
        await write(store, *(replace(message_of(f"m{place}"), time=at(time)) for place, time in enumerate(times)))
        result = await store.messages.read_day("ann", HistoryQuery())
        assert [(message.id, message.seq) for message in result.messages] == [(f"m{n}", n + 1) for n in range(4)]

    async def test_hidden_kinds_of_entries_are_not_in_history(self, store: Store):
        silent = (
            AssistantMessage(id="a0", parts=(Text(text=" \n"),)),
            ReasoningMessage(id="r", text="Hm."),
            Compacted(id="c", upto="m1", summary="So far."),
        )
        result = ToolMessage(id="t", tool_call_id="c", parts=(Text(text="1"),), time=moment(2))
        log = (on("m1", 1), AssistantMessage(id="a", time=moment(2), parts=(Text(text="Hi"),)), result)
        await write(store, *log, *[replace(entry, time=moment(5)) for entry in silent])
        assert await day_of(store) == (2, True, ["a", "t"])

    async def test_history_leaves_out_rolled_back_messages_until_the_undo(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=[on("m", 1), on("m", 2), on("m", 3)]), at(1))
        await store.runs.record(lease, RunChange(entries=[RolledBack(id="b", to="m2"), on("n", 4)]), at(1))
        assert [await day_of(store), await day_of(store, 4)] == [(4, True, ["n4"]), (1, False, ["m1"])]
        await store.runs.record(lease, RunChange(entries=[Undone(id="u")]), at(1))
        assert [await day_of(store), await day_of(store, 3)] == [(3, True, ["m3"]), (2, True, ["m2"])]

    async def test_many_hidden_messages_are_skipped(self, store: Store):
        hidden = [replace(message_of(f"h{number}"), time=moment(2)) for number in range(3000)]
        await write(store, on("m", 1), *hidden, RolledBack(id="b", to="h0"), on("m", 3))
        assert [await day_of(store), await day_of(store, 3)] == [(3, True, ["m3"]), (1, False, ["m1"])]

    @pytest.mark.parametrize("before", [date.min, date(1970, 1, 1), date.max])
    async def test_any_date_can_be_queried(self, store: Store, before: date):
        await write(store, on("m", 1))
        for zone in (UTC, EAST, timezone(-timedelta(hours=9))):
            result = await store.messages.read_day("ann", HistoryQuery(before=before, zone=zone))
            assert result.day == (date(2026, 3, 1) if before == date.max else None)

    async def test_a_call_survives_a_round_trip(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(call_start=call(1, "ab", manifest=b'[{"kind": "tools"}]')), at(1))
        (started,) = await store.calls.list_full(lease.run)
        assert (started.purpose, started.model, started.digest) == ("reply", "gpt-x", "d" * 64)
        assert (started.manifest, started.started, started.ended) == (b'[{"kind": "tools"}]', at(1), None)
        end = CallEnd(number=1, ended=at(3), first_token=at(2), finish="stop", usage=b'{"n": 1}', error="cut off")
        await store.runs.record(lease, RunChange(call_end=end, call_start=call(2, "abc", shared=2)), at(3))
        finished, following = await store.calls.list_full(lease.run)
        assert (following.body, following.ended) == (body_of("abc"), None)
        assert (finished.ended, finished.first_token, finished.finish) == (at(3), at(2), "stop")
        assert (finished.usage, finished.error, finished.body) == (b'{"n": 1}', "cut off", started.body)

    async def test_a_page_of_many_segments_is_joined(self, store: Store):
        lease = await begin(store, "r1")
        page = "".join(chr(0x4E00 + number) for number in range(PLENTY * 2))
        await store.runs.record(lease, RunChange(call_start=call(1, page)), at(1))
        assert [one.body == body_of(page) for one in await store.calls.list_full(lease.run)] == [True]

    async def test_an_existing_number_of_a_call_is_rejected(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(call_start=call(1, "ab")), at(1))
        with pytest.raises(Conflict):
            await store.runs.record(lease, RunChange(call_start=call(1, "xy"), events=(b"e",)), at(2))
        assert [one.body for one in await store.calls.list_full(lease.run)] == [body_of("ab")]
        assert (await store.runs.find("ann", "r1")).last_event == 0

    async def test_an_undamaged_call_has_its_exact_body(self, store: Store):
        lease = await begin(store, "r1")
        pages = ["abc", "abcde", "abxy", "zyzy", "zyab", ""]
        for number, (page, shared) in enumerate(zip(pages, (0, 3, 2, 0, 2, 0), strict=True), start=1):
            await store.runs.record(lease, RunChange(call_start=sealed(number, page, shared)), at(number))
        end = CallEnd(number=2, ended=at(9), first_token=at(8), finish="stop", usage=b'{"n": 1}', price=12)
        await store.runs.record(lease, RunChange(call_end=end), at(9))
        results = [await store.calls.read(lease.run, number) for number in range(1, 7)]
        assert [(one.body, one.damaged) for one in results] == [(body_of(page), ()) for page in pages]
        assert (await store.runs.find("ann", "r1")).calls == 6
        assert tuple(one.summary for one in results) == await store.calls.list_summaries(lease.run)
        second = results[1].summary
        assert (second.price, second.finish, second.first_token, second.ended) == (12, "stop", at(8), at(9))
        assert (results[0].summary.price, results[0].summary.manifest) == (None, b"[]")

    async def test_X1_damage_of_a_call_is_reported_and_a_missing_call_is_not_found(self, store: Store):
        lease = await begin(store, "r1")
        lacking = replace(sealed(2, "abc"), segments=[segment("a"), segment("c")])
        for damaged, problem in ((call(1, "abd"), "digest"), (lacking, segment("b").sha256.hex())):
            await store.runs.record(lease, RunChange(call_start=damaged), at(1))
            results = await store.calls.read(lease.run, damaged.number)
            assert (results.damaged, results.body) == ((problem,), None)
            await store.threads.delete("ann", "thread-1")
            lease = await begin(store, "r1")
        for run, number in ((lease.run, 2), (lease.run, 0), ("unknown", 1)):
            with pytest.raises(NotFound):
                await store.calls.read(run, number)

    async def test_the_previous_call_has_the_same_purpose(self, store: Store):
        first = await begin(store, "r1")
        await store.runs.record(first, RunChange(call_start=sealed(1, "a")), at(1))
        title = replace(sealed(2, "t"), purpose="title")
        await store.runs.record(first, RunChange(call_start=title, ending=RunEnding(outcome="done")), at(2))
        elsewhere, second = await begin(store, "r2", "thread-2"), await begin(store, "r3")
        await store.runs.record(elsewhere, RunChange(call_start=sealed(1, "x")), at(3))
        for number in (1, 2):
            await store.runs.record(second, RunChange(call_start=sealed(number, "ab")), at(3 + number))
        requests = [(second.run, 2), (second.run, 1), (first.run, 1), (first.run, 2), (elsewhere.run, 1)]
        results = [await store.calls.find_previous(*one) for one in requests]
        assert results == [(second.run, 1), (first.run, 1), None, None, None]

    async def test_the_answered_call_is_the_newest_with_usage(self, store: Store):
        first = await begin(store, "r1")
        for number, usage in ((1, b"{}"), (2, None), (3, None)):
            end = CallEnd(number=number, ended=at(number), usage=usage)
            await store.runs.record(first, RunChange(call_start=sealed(number, "a")), at(number))
            await store.runs.record(first, RunChange(call_end=end), at(number))
        results = [await store.calls.find_answered(first.run, number) for number in (1, 3)]
        assert results == [(first.run, 1)] * 2
        assert await store.calls.find_answered("unknown", 1) is None

    async def test_cleanup_deletes_stored_calls(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(call_start=call(1, "ab"), ending=RunEnding(outcome="done")), at(1))
        requests = ((lease.run, 1), (lease.run, 2), ("unknown", 1))
        assert [await store.calls.exists(*one) for one in requests] == [True, False, False]
        await store.threads.clean(Retention(calls_before=at(9)))
        assert not await store.calls.exists(lease.run, 1)

    async def test_calls_of_a_thread_are_listed_newest_first_for_its_owner(self, store: Store):
        first = await begin(store, "r1")
        for number in (1, 2):
            await store.runs.record(first, RunChange(call_start=sealed(number, "a")), at(number))
        await store.runs.record(first, RunChange(ending=RunEnding(outcome="done")), at(3))
        elsewhere, second = await begin(store, "r2", "thread-2"), await begin(store, "r3")
        manifest = b'{"parts": [], "tokens": 7}'
        for lease in (elsewhere, second):
            await store.runs.record(lease, RunChange(call_start=replace(sealed(1, "b"), manifest=manifest)), at(4))
        expected = [(second.run, 1, 7, 0), (first.run, 2, None, None), (first.run, 1, None, None)]
        for limit in (9, 2):
            result = await store.calls.list_newest("ann", "thread-1", limit)
            assert [(one.run, one.summary.number, one.tokens, one.saved) for one in result] == expected[:limit]
        for owner, thread in (("bob", "thread-1"), ("ann", "thread-9")):
            with pytest.raises(NotFound):
                await store.calls.list_newest(owner, thread, 9)

    async def test_an_administrator_finds_a_run_by_id_before_name(self, store: Store):
        mine, theirs = await admit(store, "r1"), await admit(store, "r1", "thread-2", owner="bob")
        changed = await admit(store, mine.id, "thread-3", owner="bob")
        # A run whose name is the id of another does not hide it.
        own = await admit(store, mine.id, "thread-4")
        assert [(await store.runs.find("ann", id)).id for id in (mine.id, own.id)] == [mine.id, own.id]
        assert [run.id for run in await store.runs.find_of_any_user("r1")] == [mine.id, theirs.id]
        assert [run.id for run in await store.runs.find_of_any_user(mine.id)] == [mine.id]
        assert [run.id for run in await store.runs.find_of_any_user(changed.id)] == [changed.id]
        assert await store.runs.find_of_any_user("nobodys") == ()


def sealed(number: int, page: str, shared: int = 0) -> CallStart:
    hashes = b"".join([segment(letter).sha256 for letter in page])
    return replace(call(number, page, shared=shared), digest=sha256(hashes).hexdigest())


def moment(day: int) -> datetime:
    return datetime(2026, 3, day, 12, tzinfo=UTC)


def on(id: str, day: int) -> Entry:
    return replace(message_of(f"{id}{'' if id[-1].isdigit() else day}"), time=moment(day))


async def write(store: Store, *entries: Entry) -> None:
    """Write a log to a thread. Duplicate ids get their position as a suffix."""
    lease = await begin(store, "r1")
    ids = [entry.id for entry in entries]
    twice = len(set(ids)) < len(ids)
    changed = [replace(entry, id=f"{entry.id}-{place}") if twice else entry for place, entry in enumerate(entries)]
    await store.runs.record(lease, RunChange(entries=changed, ending=RunEnding(outcome="done")), at(1))


async def day_of(store: Store, before: int | None = None) -> tuple[int | None, bool, list[str]]:
    """Return the day of March, whether there are more, and the ids."""
    result = await store.messages.read_day("ann", HistoryQuery(before=date(2026, 3, before) if before else None))
    return result.day.day if result.day else None, result.has_more, [message.id for message in result.messages]
