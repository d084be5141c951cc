"""What a store promises of cancelling: a run that waits ends at once, one that runs is to end, one that ended stays."""

import asyncio

from recto.store.ports import Cancel, RunChange
from recto.store.store import Store
from tests.store.suite.samples import (
    LEASE,
    NODE,
    OTHER_NODE,
    START,
    admit,
    at,
    begin,
    claim_names,
    events,
    events_of,
    lease_of,
)

WISH = Cancel(reason="user", now=at(3), events=(b"started", b"cancelled"))
LATER = Cancel(reason="timeout", now=at(4), events=(b"other",))


class CancelSuite:
    async def test_a_run_that_waits_ends_at_once_with_the_events_given(self, store: Store):
        run = await store.cancel(await admit(store, "r1"), WISH)
        assert (run.status, run.outcome, run.cancel, run.ended) == ("ended", "cancelled", "user", at(3))
        assert run.last_event == 2
        assert await events_of(store, run.id) == [(1, b"started"), (2, b"cancelled")]
        assert await store.find_run("ann", "r1") == run
        assert await claim_names(store, NODE, at(5)) == []
        # One that ended stays as it is.
        assert await store.cancel(run, LATER) == run

    async def test_a_running_run_is_told_with_its_next_change(self, store: Store):
        lease = await begin(store, "r1")
        assert (await store.cancel(await admit(store, "r2"), WISH)).status == "ended"
        assert (await store.record(lease, events(b"a"), at(1))).cancel is None
        run = await store.cancel(await store.find_run("ann", "r1"), WISH)
        assert (run.status, run.cancel, run.last_event) == ("running", "user", 1)
        assert (await store.record(lease, events(b"b"), at(4))).cancel == "user"
        assert await events_of(store, lease.run) == [(1, b"a"), (2, b"b")]

    async def test_the_wish_stays_when_another_worker_takes_over(self, store: Store):
        await begin(store, "r1")
        await store.cancel(await store.find_run("ann", "r1"), WISH)
        (run,) = await store.claim(OTHER_NODE, START + LEASE, limit=1)
        assert run.cancel == "user"
        assert (await store.record(lease_of(run), RunChange(), at(60))).cancel == "user"

    async def test_the_first_reason_stays(self, store: Store):
        run = await store.find_run("ann", (await begin(store, "r1")).run)
        first = await store.cancel(run, WISH)
        assert await store.cancel(run, LATER) == first
        assert (first.cancel, await events_of(store, run.id)) == ("user", [])

    async def test_many_wishes_at_once_end_a_run_once(self, store: Store):
        waiting = await admit(store, "r1")
        found = await asyncio.gather(*(store.cancel(waiting, WISH) for _ in range(8)))
        assert {run.status for run in found} == {"ended"}
        assert await events_of(store, waiting.id) == [(1, b"started"), (2, b"cancelled")]

    async def test_a_run_claimed_and_cancelled_at_once_is_told_or_never_begins(self, store: Store):
        waiting = [await admit(store, f"r{number}", f"thread-{number}") for number in range(10)]
        claims = [store.claim(NODE, at(0), limit=1) for _ in waiting]
        cancels = [store.cancel(run, WISH) for run in waiting]
        claimed, cancelled = await asyncio.gather(asyncio.gather(*claims), asyncio.gather(*cancels))
        for run in (run for runs in claimed for run in runs):
            assert (await store.record(lease_of(run), events(b"a"), at(1))).cancel == "user"
        begun = {run.id for runs in claimed for run in runs}
        assert {run.id for run in cancelled if run.status == "ended"} == {run.id for run in waiting} - begun

    async def test_of_the_runs_held_those_to_end_are_named(self, store: Store):
        one, two = await begin(store, "r1", "a"), await begin(store, "r2", "b")
        three = await begin(store, "r3", "c")
        await store.cancel(await store.find_run("ann", "r2"), WISH)
        await store.cancel(await store.find_run("ann", "r3"), WISH)
        assert list(await store.cancels([one.run, two.run])) == [two.run]
        assert sorted(await store.cancels([three.run, two.run, "nobody's"])) == sorted([two.run, three.run])
        assert list(await store.cancels([])) == []
