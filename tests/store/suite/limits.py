"""Runs that others block (P6, C4): queued, rejected, or interrupting."""

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


async def check_rejected(
    store: Store, name: str, bounds: Bounds, *, thread: str = "thread-1", retry: timedelta | None = None
) -> str:
    """Check that a run is rejected and stores nothing. Return the text."""
    with pytest.raises(LimitReached) as limit:
        await store.runs.admit(replace(admission(name, thread), bounds=bounds))
    assert not await has_run(store, "ann", name)
    assert limit.value.retry > 0
    assert retry is None or limit.value.retry == retry.total_seconds()
    return str(limit.value)


class LimitSuite:
    async def test_P6_multitask_reject_raises_a_conflict_while_a_run_is_active(self, store: Store):
        lease = await begin(store, "r1")
        new = replace(admission("r2"), multitask="reject")
        with pytest.raises(Conflict, match="Another run of this thread is active"):
            await store.runs.admit(new, NODE)
        assert not await has_run(store, "ann", "r2")
        # A run of another thread blocks nobody.
        elsewhere = replace(admission("r3", "thread-2"), multitask="reject")
        assert (await store.runs.admit(elsewhere, NODE)).run.status == "running"
        await store.runs.record(lease, RunChange(ending=RunEnding(outcome="done")), at(1))
        assert (await store.runs.admit(new, NODE)).run.status == "running"
        await admit(store, "waits", "thread-3")
        with pytest.raises(Conflict):
            await store.runs.admit(replace(admission("r4", "thread-3"), multitask="reject"))

    async def test_P6_multitask_interrupt_cancels_the_active_run_and_queues(self, store: Store):
        first = await store.runs.admit(replace(admission("r1"), multitask="interrupt"), NODE)
        assert (first.interrupted, first.run.status) == (None, "running")
        lease = lease_of(first.run)
        await admit(store, "r2")
        result = await store.runs.admit(replace(admission("r3"), multitask="interrupt"), NODE)
        assert (result.interrupted, result.run.status) == (lease.run, "queued")
        assert (await store.runs.find("ann", "r1")).cancel == "another run was started in its place"
        # Queued runs keep their place.
        assert (await store.runs.find("ann", "r2")).cancel is None
        await store.runs.record(lease, RunChange(ending=RunEnding(outcome="cancelled")), at(1))
        assert await claim_names(store, NODE, at(2)) == ["r2"]

    async def test_P4_a_repeated_request_is_answered_before_limits(self, store: Store):
        lease = await begin(store, "r1")
        again = replace(admission("r1"), id=new_id(), multitask="reject", bounds=Bounds(user_runs=1))
        result = await store.runs.admit(again, NODE)
        assert (result.is_new, result.run.id) == (False, lease.run)

    async def test_limits_of_runs_are_enforced(self, store: Store):
        lease = await begin(store, "r1")
        await admit(store, "r2")
        for bounds, where, problem in (
            (Bounds(user_runs=2), "thread-2", "You have 2 active or queued runs"),
            (Bounds(thread_queue=1), "thread-1", "1 runs are queued for this thread"),
            (Bounds(queue=1), "thread-1", "1 runs are queued for this server"),
            # Without a free worker, a run is queued although its thread is free.
            (Bounds(queue=1), "thread-2", "1 runs are queued for this server"),
        ):
            text = f"{problem}, which is the limit. Wait for one to end, or cancel one."
            assert await check_rejected(store, "r3", bounds, thread=where) == text
        free = replace(admission("r4", "thread-3"), bounds=Bounds(queue=1, thread_queue=1))
        assert (await store.runs.admit(free, NODE)).run.status == "running"
        await store.runs.admit(replace(admission("r1", "thread-4", owner="bob"), bounds=Bounds(user_runs=2)))
        await store.runs.record(lease, RunChange(ending=RunEnding(outcome="done")), at(1))
        await store.runs.admit(replace(admission("r3", "thread-2"), bounds=Bounds(user_runs=3)))

    async def test_the_daily_limit_of_tokens_is_enforced(self, store: Store):
        lease = await begin(store, "r1")
        usage = dump({"inputTokens": 90, "outputTokens": 10})
        await store.runs.record(lease, RunChange(call_start=call(1, "a")), at(1))
        await store.runs.record(lease, RunChange(call_end=CallEnd(number=1, ended=at(2), usage=usage)), at(2))
        await store.runs.admit(replace(admission("r2"), bounds=Bounds(user_tokens=101)))
        problem = await check_rejected(store, "r3", Bounds(user_tokens=100), retry=MIDNIGHT - START)
        assert problem == "You used 100 of 100 tokens today (UTC). Try again tomorrow."
        await store.runs.admit(replace(admission("r1", "thread-2", owner="bob"), bounds=Bounds(user_tokens=100)))
        await store.runs.admit(replace(admission("r4"), created=MIDNIGHT, bounds=Bounds(user_tokens=100)))

    @pytest.mark.parametrize(
        ("thread", "bounds"), [("thread-{}", Bounds(user_runs=ROOM)), ("thread", Bounds(thread_queue=ROOM))]
    )
    async def test_concurrent_requests_respect_the_limits(self, store: Store, thread: str, bounds: Bounds):
        many = [replace(admission(f"r{number}", thread.format(number)), bounds=bounds) for number in range(12)]
        done = await asyncio.gather(*[store.runs.admit(new) for new in many], return_exceptions=True)
        claims = [one for one in done if not isinstance(one, BaseException)]
        assert len(claims) == ROOM
        assert all(isinstance(one, LimitReached) for one in done if isinstance(one, BaseException))

    async def test_P6_one_of_many_concurrent_rejecting_requests_is_admitted(self, store: Store):
        for attempt in range(ATTEMPTS):
            thread = f"thread-{attempt}"
            # A new thread admits one at a time by itself.
            await store.runs.record(await begin(store, f"first {attempt}", thread), RunChange(ending=DONE), at(1))
            many = [replace(admission(f"{attempt}-{one}", thread), multitask="reject") for one in range(6)]
            done = await asyncio.gather(*[store.runs.admit(new, NODE) for new in many], return_exceptions=True)
            assert sorted(type(one).__name__ for one in done) == ["AdmissionResult", *["Conflict"] * 5]

    async def test_C4_a_run_without_an_agent_gets_the_threads_agent(self, store: Store):
        first = replace(admission("r1"), agent=None, fallback="chat")
        assert (await store.runs.admit(first)).run.agent == "chat"
        changed = replace(admission("r2"), agent="docs", fallback="chat")
        assert (await store.runs.admit(changed)).run.agent == "docs"
        # The last agent continues, whatever the server's default is now.
        assert (await store.runs.admit(replace(admission("r3"), agent=None, fallback="other"))).run.agent == "docs"
        assert await store.threads.get_agent("ann", "thread-1") == "docs"

    async def test_a_recreated_thread_differs_from_the_deleted_one(self, store: Store):
        lease = await begin(store, "r1")
        old = await store.runs.find("ann", lease.run)
        await store.threads.delete("ann", "thread-1")
        later = replace(admission("r2"), created=at(60))
        new = (await store.runs.admit(later, NODE)).run
        assert (old.thread_created, new.thread_created) == (START, at(60))
        assert lease_of(new).thread == lease.thread
