"""What a store promises of a run that others stand in the way of (P6, C4): it waits, is refused, or ends them."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recto.config.run_settings import Bounds
from recto.conversation.json import dump
from recto.errors import Conflict, LimitReached
from recto.ids import new_id
from recto.store.ports import CallEnd, RunChange, RunEnding
from recto.store.store import Store
from tests.store.suite.calls import call
from tests.store.suite.samples import NODE, START, admission, admit, at, begin, claim_names, has_run, lease_of

ROOM = 3
ATTEMPTS = 8
DONE = RunEnding(outcome="done")
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


async def refused(
    store: Store, name: str, bounds: Bounds, *, thread: str = "thread-1", retry: timedelta | None = None
) -> str:
    """The words a run is refused with. It leaves nothing behind."""
    with pytest.raises(LimitReached) as limit:
        await store.runs.admit(replace(admission(name, thread), bounds=bounds))
    assert not await has_run(store, "ann", name)
    assert limit.value.retry > 0
    assert retry is None or limit.value.retry == retry.total_seconds()
    return str(limit.value)


class BoundsSuite:
    async def test_P6_a_run_that_will_not_wait_is_refused_while_another_is_active(self, store: Store):
        lease = await begin(store, "r1")
        new = replace(admission("r2"), multitask="reject")
        with pytest.raises(Conflict, match="Another run of this thread is active"):
            await store.runs.admit(new, NODE)
        assert not await has_run(store, "ann", "r2")
        # A run of another thread stands in nobody's way.
        elsewhere = replace(admission("r3", "thread-2"), multitask="reject")
        assert (await store.runs.admit(elsewhere, NODE)).run.status == "running"
        await store.runs.record(lease, RunChange(ending=RunEnding(outcome="done")), at(1))
        assert (await store.runs.admit(new, NODE)).run.status == "running"
        await admit(store, "waits", "thread-3")
        with pytest.raises(Conflict):
            await store.runs.admit(replace(admission("r4", "thread-3"), multitask="reject"))

    async def test_P6_a_run_that_interrupts_ends_the_active_one_and_waits_for_it(self, store: Store):
        first = await store.runs.admit(replace(admission("r1"), multitask="interrupt"), NODE)
        assert (first.interrupted, first.run.status) == (None, "running")
        lease = lease_of(first.run)
        await admit(store, "r2")
        admitted = await store.runs.admit(replace(admission("r3"), multitask="interrupt"), NODE)
        assert (admitted.interrupted, admitted.run.status) == (lease.run, "queued")
        assert (await store.runs.find("ann", "r1")).cancel == "another run was started in its place"
        # What waits keeps its place.
        assert (await store.runs.find("ann", "r2")).cancel is None
        await store.runs.record(lease, RunChange(ending=RunEnding(outcome="cancelled")), at(1))
        assert await claim_names(store, NODE, at(2)) == ["r2"]

    async def test_P4_a_request_that_was_taken_is_answered_before_anything_is_refused(self, store: Store):
        lease = await begin(store, "r1")
        again = replace(admission("r1"), id=new_id(), multitask="reject", bounds=Bounds(user_runs=1))
        admitted = await store.runs.admit(again, NODE)
        assert (admitted.is_new, admitted.run.id) == (False, lease.run)

    async def test_so_many_runs_are_at_work_or_wait_and_no_more(self, store: Store):
        lease = await begin(store, "r1")
        await admit(store, "r2")
        for bounds, where, problem in (
            (Bounds(user_runs=2), "thread-2", "You have 2 active or queued runs"),
            (Bounds(thread_queue=1), "thread-1", "1 runs are queued for this thread"),
            (Bounds(queue=1), "thread-1", "1 runs are queued for this server"),
            # Where nobody has a hand free, a run waits too, though its thread is free.
            (Bounds(queue=1), "thread-2", "1 runs are queued for this server"),
        ):
            text = f"{problem}, which is the limit. Wait for one to end, or cancel one."
            assert await refused(store, "r3", bounds, thread=where) == text
        free = replace(admission("r4", "thread-3"), bounds=Bounds(queue=1, thread_queue=1))
        assert (await store.runs.admit(free, NODE)).run.status == "running"
        await store.runs.admit(replace(admission("r1", "thread-4", owner="bob"), bounds=Bounds(user_runs=2)))
        await store.runs.record(lease, RunChange(ending=RunEnding(outcome="done")), at(1))
        await store.runs.admit(replace(admission("r3", "thread-2"), bounds=Bounds(user_runs=3)))

    async def test_a_user_has_so_many_tokens_a_day_and_no_more(self, store: Store):
        lease = await begin(store, "r1")
        usage = dump({"inputTokens": 90, "outputTokens": 10})
        await store.runs.record(lease, RunChange(call_start=call(1, "a")), at(1))
        await store.runs.record(lease, RunChange(call_end=CallEnd(number=1, ended=at(2), usage=usage)), at(2))
        await store.runs.admit(replace(admission("r2"), bounds=Bounds(user_tokens=101)))
        problem = await refused(store, "r3", Bounds(user_tokens=100), retry=MIDNIGHT - START)
        assert problem == "You used 100 of 100 tokens today (UTC). Try again tomorrow."
        await store.runs.admit(replace(admission("r1", "thread-2", owner="bob"), bounds=Bounds(user_tokens=100)))
        await store.runs.admit(replace(admission("r4"), created=MIDNIGHT, bounds=Bounds(user_tokens=100)))

    @pytest.mark.parametrize(
        ("thread", "bounds"), [("thread-{}", Bounds(user_runs=ROOM)), ("thread", Bounds(thread_queue=ROOM))]
    )
    async def test_of_many_requests_at_once_no_more_are_taken_than_there_is_room_for(
        self, store: Store, thread: str, bounds: Bounds
    ):
        many = [replace(admission(f"r{number}", thread.format(number)), bounds=bounds) for number in range(12)]
        done = await asyncio.gather(*[store.runs.admit(new) for new in many], return_exceptions=True)
        taken = [one for one in done if not isinstance(one, BaseException)]
        assert len(taken) == ROOM
        assert all(isinstance(one, LimitReached) for one in done if isinstance(one, BaseException))

    async def test_P6_of_many_that_will_not_wait_and_come_at_once_one_is_taken(self, store: Store):
        for attempt in range(ATTEMPTS):
            thread = f"thread-{attempt}"
            # A thread that is new lets one in at a time by itself.
            await store.runs.record(await begin(store, f"first {attempt}", thread), RunChange(ending=DONE), at(1))
            many = [replace(admission(f"{attempt}-{one}", thread), multitask="reject") for one in range(6)]
            done = await asyncio.gather(*[store.runs.admit(new, NODE) for new in many], return_exceptions=True)
            assert sorted(type(one).__name__ for one in done) == ["AdmissionResult", *["Conflict"] * 5]

    async def test_C4_a_run_that_names_no_agent_has_the_threads(self, store: Store):
        first = replace(admission("r1"), agent=None, fallback="chat")
        assert (await store.runs.admit(first)).run.agent == "chat"
        named = replace(admission("r2"), agent="docs", fallback="chat")
        assert (await store.runs.admit(named)).run.agent == "docs"
        # Who was named last goes on, whatever the server's default has become.
        assert (await store.runs.admit(replace(admission("r3"), agent=None, fallback="other"))).run.agent == "docs"
        assert await store.threads.get_agent("ann", "thread-1") == "docs"

    async def test_a_thread_made_again_under_an_old_id_is_told_from_the_old_one(self, store: Store):
        lease = await begin(store, "r1")
        old = await store.runs.find("ann", lease.run)
        await store.threads.delete("ann", "thread-1")
        later = replace(admission("r2"), created=at(60))
        new = (await store.runs.admit(later, NODE)).run
        assert (old.thread_created, new.thread_created) == (START, at(60))
        assert lease_of(new).thread == lease.thread
