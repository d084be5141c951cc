"""Threads: lists, titles, deletion. Each user sees only their own."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import pytest

from recto.conversation.log import SkillChanged
from recto.conversation.messages import AssistantMessage, Text, ToolCall, UserMessage
from recto.errors import LeaseLost, NotFound, WireError
from recto.store.ports import AdmissionThread, Cancel, RunChange, RunEnding
from recto.store.store import Store
from recto.store.threads.history import HistoryQuery
from recto.store.threads.thread_rows import StoppedRun, StoredThread
from recto.store.threads.threads import ForkOptions, RollbackOptions, ThreadsQuery
from tests.store.suite.calls import call
from tests.store.suite.samples import (
    NODE,
    START,
    admission,
    admit,
    all_pages,
    at,
    begin,
    claim_names,
    events,
    message_of,
)

TOGETHER = 20


class ThreadSuite:
    async def test_a_thread_has_all_its_columns_and_its_active_run(self, store: Store):
        lease = await begin(store, "r1")
        change = RunChange(
            entries=(message_of("m1", "Plan  my\nweek"), SkillChanged(id="s", skill="bazi", scenario="work"))
        )
        await store.runs.record(lease, change, at(2))
        expected = StoredThread(
            id="thread-1",
            title="Plan my week",
            agent="vibe",
            skill="bazi",
            scenario="work",
            created=START,
            updated=at(2),
            active=lease.run,
        )
        assert await store.threads.get("ann", "thread-1") == expected
        assert await list_threads(store) == ["thread-1"]

    async def test_P5_another_users_thread_and_a_missing_one_raise_the_same_error(self, store: Store):
        await begin(store, "r1")
        for owner, id in (("bob", "thread-1"), ("ann", "unknown")):
            requests: Sequence[Awaitable[object]] = (
                store.threads.get(owner, id),
                store.threads.rename(owner, id, "x"),
                store.threads.archive(owner, id, is_archived=True),
                store.threads.delete(owner, id),
                store.runs.list_page(owner, id, None, 9),
                store.threads.fork(owner, ForkOptions(thread=id, id="fork", now=at(1))),
                store.messages.read_day(owner, HistoryQuery(thread=id)),
                store.threads.roll_back(owner, RollbackOptions(thread=id, id="b", now=at(1)), to="m1"),
                store.threads.undo(owner, RollbackOptions(thread=id, id="b", now=at(1))),
            )
            results = await asyncio.gather(*requests, return_exceptions=True)
            assert [type(one) for one in results] == [NotFound] * len(requests)
            assert {str(one) for one in results} == {f"There is no thread {id!r}."}
        assert await list_threads(store, owner="bob") == []
        assert (await store.threads.get("ann", "thread-1")).title is None

    async def test_threads_are_listed_newest_activity_first(self, store: Store):
        # Some have equal times, so that their ids decide.
        for number in range(7):
            lease = await begin(store, f"r{number}", f"thread-{number}")
            await store.runs.record(lease, RunChange(entries=[message_of("m")]), at(number // 2))
        await admit(store, "other", "thread-x", owner="bob")
        expected = [f"thread-{number}" for number in (6, 5, 4, 3, 2, 1, 0)]
        assert await list_threads(store) == expected
        for size in (1, 2, 3, 7):
            assert await list_in_pages(store, size) == expected

    async def test_a_list_can_be_filtered_by_agent_and_archive(self, store: Store):
        for number, agent in enumerate(("vibe", "chat", "vibe")):
            new = replace(admission(f"r{number}", f"thread-{number}"), agent=agent, created=at(number))
            await store.runs.admit(new)
        before = await store.threads.get("ann", "thread-0")
        archived = await store.threads.archive("ann", "thread-0", is_archived=True)
        assert archived == replace(before, archived=True)
        expected = {(None, True): [2, 1, 0], (None, False): [2, 1], ("vibe", True): [2, 0], ("vibe", False): [2]}
        for (agent, with_archived), numbers in expected.items():
            result = await store.threads.list_page("ann", ThreadsQuery(agent=agent, with_archived=with_archived))
            assert [thread.id for thread in result.threads] == [f"thread-{number}" for number in numbers]
        assert await store.threads.archive("ann", "thread-0", is_archived=False) == before

    async def test_open_runs_are_listed_in_order_for_their_owner(self, store: Store):
        await end(store, "r1", "done")
        await begin(store, "r2")
        await admit(store, "r3")
        await admit(store, "r4", "thread-2")
        result = await store.runs.list_open("ann", "thread-1")
        assert [(run.name, run.status) for run in result] == [("r2", "running"), ("r3", "queued")]
        assert result[0] == await store.runs.find("ann", "r2")
        assert not await store.runs.list_open("bob", "thread-1")
        assert not await store.runs.list_open("ann", "unknown")

    @pytest.mark.parametrize("cursor", ["", "x", "AAAA", "é", "WzFd", "W251bGwsImEiXQ", "WzEsICJhIl0", "a" * 5000])
    async def test_an_invalid_cursor_is_rejected(self, store: Store, cursor: str):
        await admit(store, "r1")
        with pytest.raises(WireError, match="cursor"):
            await store.threads.list_page("ann", ThreadsQuery(cursor=cursor))
        with pytest.raises(WireError, match="cursor"):
            await store.runs.list_page("ann", "thread-1", cursor, 5)
        with pytest.raises(WireError, match="cursor"):
            await store.files.list_page("ann", cursor, 5)
        with pytest.raises(WireError, match="cursor"):
            await store.datasets.list_page("ann", cursor, 5)

    async def test_titles_are_searched_by_a_part_in_any_case(self, store: Store):
        titles = {"a": "Plan 100% of it", "b": "plan_b", "c": "四柱 reading", "d": "A\\B", "e": "1000 plans"}
        for id, title in titles.items():
            await begin(store, f"r{id}", id)
            await store.threads.rename("ann", id, title)
        await admit(store, "untitled", "f")
        result = {
            words: sorted(await list_threads(store, search=words)) for words in ("PLAN", "0%", "_", "柱", "\\", "zz")
        }
        expected = {"PLAN": ["a", "b", "e"], "0%": ["a"], "_": ["b"], "柱": ["c"], "\\": ["d"], "zz": list[str]()}
        assert result == expected
        assert await list_in_pages(store, 1, search="plan") == ["e", "b", "a"]

    async def test_a_title_of_the_user_is_never_overwritten(self, store: Store):
        lease = await begin(store, "r1")
        for entry, title in (
            (UserMessage(id="m0", time=START), None),
            (message_of("m1", "First words"), "First words"),
            (message_of("m2", "Later words"), "First words"),
        ):
            await store.runs.record(lease, RunChange(entries=[entry]), at(1))
            assert (await store.threads.get("ann", "thread-1")).title == title
        assert await store.threads.set_title_if_automatic("thread-1", "Better")
        before = await store.threads.get("ann", "thread-1")
        assert before.title == "Better"
        renamed = await store.threads.rename("ann", "thread-1", "Mine 四")
        assert (renamed.title, renamed.updated) == ("Mine 四", before.updated)
        assert not await store.threads.set_title_if_automatic("thread-1", "Best")
        assert not await store.threads.set_title_if_automatic("unknown", "Best")
        await store.runs.record(lease, RunChange(entries=[message_of("m3", "More")]), at(3))
        assert (await store.threads.get("ann", "thread-1")).title == "Mine 四"

    async def test_admission_gets_the_agent_of_an_own_thread_only(self, store: Store):
        lease = await begin(store, "r1")
        assert await store.threads.get_for_admission("ann", "thread-1") == AdmissionThread(is_own=True, agent="vibe")
        await store.runs.record(lease, RunChange(entries=[SkillChanged(id="s", skill="bazi", scenario="work")]), at(1))
        requests = [("ann", "thread-1"), ("bob", "thread-1"), ("ann", "unknown"), ("ann", "THREAD-1")]
        results = [await store.threads.get_for_admission(owner, id) for owner, id in requests]
        own = AdmissionThread(is_own=True, agent="vibe", skill="bazi")
        assert results == [own, AdmissionThread(is_own=False), None, None]
        assert [await store.threads.get_agent(owner, id) for owner, id in requests[:3]] == ["vibe", None, None]
        await store.runs.record(lease, RunChange(entries=[SkillChanged(id="s2", skill=None)]), at(2))
        assert await store.threads.get_for_admission("ann", "thread-1") == replace(own, skill=None)

    async def test_a_deleted_thread_leaves_no_rows(self, store: Store):
        finished = await end(store, "r1", "done")
        running = await begin(store, "r2")
        await store.runs.record(
            running, RunChange(entries=[message_of("n1")], events=(b"a", b"b"), call_start=call(1, "ab")), at(2)
        )
        waiting = await admit(store, "r3")
        other = await begin(store, "r4", "thread-2")
        await store.runs.record(other, RunChange(entries=[message_of("o1")], call_start=call(1, "ab")), at(2))
        stopped = await store.threads.delete("ann", "thread-1")
        assert [run.id for run in stopped] == [running.run, waiting.id]
        assert stopped[0] == StoppedRun(id=running.run, name="r2", thread="thread-1", last_event=2)
        for id in (finished, running.run, waiting.id, "r3"):
            with pytest.raises(NotFound):
                await store.runs.find("ann", id)
        assert list(await store.log.read_after("thread-1")) == []
        assert list(await store.events.list_after(running.run, 0, 9)) == []
        assert await list_threads(store) == ["thread-2"]
        assert len(await store.calls.list_full(other.run)) == 1
        assert await claim_names(store, NODE, at(99)) == ["r4"]

    async def test_the_lease_of_a_deleted_run_is_lost(self, store: Store):
        lease, other = await begin(store, "r1"), await begin(store, "r2", "thread-2")
        run = await store.runs.find("ann", "r1")
        await store.threads.delete("ann", "thread-1")
        whole = RunChange(
            entries=[message_of("m1")], events=(b"e",), call_start=call(1, "a"), ending=RunEnding(outcome="done")
        )
        for change in (events(b"a"), RunChange(entries=[message_of("m1")]), RunChange(failures=1), whole):
            with pytest.raises(LeaseLost):
                await store.runs.record(lease, change, at(1))
        stale, added = await asyncio.gather(
            store.events.add(lease, (b"x",)), store.events.add(other, (b"y",)), return_exceptions=True
        )
        assert (type(stale), type(added).__name__) == (LeaseLost, "RecordResult")
        assert await store.runs.renew(NODE, [lease], at(1)) == ()
        with pytest.raises(NotFound):
            await store.runs.cancel(run, Cancel(reason="user", now=at(1), events=()))

    async def test_writes_during_a_deletion_are_stored_or_lose_their_lease(self, store: Store):
        leases = [await begin(store, f"r{number}", f"thread-{number}") for number in range(TOGETHER)]
        change = RunChange(entries=[message_of("m")], events=(b"a",), call_start=call(1, "ab"))
        writes = [store.runs.record(lease, change, at(1)) for lease in leases]
        words = [store.events.add(lease, (b"x",)) for lease in leases]
        removed = [store.threads.delete("ann", lease.thread) for lease in leases]
        doings: list[Awaitable[object]] = [*writes, *words, *removed]
        results = await asyncio.gather(*doings, return_exceptions=True)
        assert {type(one).__name__ for one in results} - {"RecordResult", "LeaseLost", "tuple"} == set[str]()
        assert await list_threads(store) == []

    async def test_the_current_turn_starts_at_its_user_message(self, store: Store):
        lease = await begin(store, "r1")
        request = AssistantMessage(id="a1", parts=(ToolCall(id="c1", name="pick", arguments="{}"),))
        words = [AssistantMessage(id=f"b{number}", parts=(Text(text="x"),)) for number in range(200)]
        await store.runs.record(lease, RunChange(entries=[message_of("m1"), *words, message_of("m2"), request]), at(1))
        assert [entry.id for entry in await store.log.read_turn("thread-1")] == ["m2", "a1"]
        assert list(await store.log.read_turn("unknown")) == []


async def list_threads(store: Store, *, owner: str = "ann", search: str | None = None) -> list[str]:
    return [thread.id for thread in (await store.threads.list_page(owner, ThreadsQuery(search=search))).threads]


async def list_in_pages(store: Store, size: int, search: str | None = None) -> list[str]:
    query = ThreadsQuery(limit=size, search=search)
    pages = await all_pages(lambda cursor: store.threads.list_page("ann", replace(query, cursor=cursor)))
    return [thread.id for page in pages for thread in page.threads]


async def end(store: Store, name: str, outcome: str, thread: str = "thread-1") -> str:
    """Finish a run with a message, an event and a call. Return its id."""
    lease = await begin(store, name, thread)
    change = RunChange(
        entries=[message_of(f"m-{name}")], events=(b"a",), call_start=call(1, "ab"), ending=RunEnding(outcome=outcome)
    )
    await store.runs.record(lease, change, at(1))
    return lease.run
