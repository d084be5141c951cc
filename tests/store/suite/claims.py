"""What a store promises of claims: who gets which run, in which order, and never two the same."""

import asyncio
from collections import Counter
from dataclasses import replace

from recto.store.ports import RunChange, RunEnding
from recto.store.store import Store
from tests.store.suite.samples import (
    LEASE,
    NODE,
    OTHER_NODE,
    START,
    admission,
    admit,
    at,
    begin,
    claim_names,
    lease_of,
)

END = RunChange(ending=RunEnding(outcome="success"))


class ClaimSuite:
    async def test_a_claimed_run_is_running_under_its_first_fence(self, store: Store):
        await admit(store, "r1")
        (run,) = await store.claim(NODE, at(5), limit=1)
        assert (run.status, run.fence, run.started) == ("running", 1, at(5))
        assert await store.find_run("ann", "r1") == run

    async def test_one_run_of_a_thread_is_active_at_a_time(self, store: Store):
        lease = await begin(store, "r1")
        await admit(store, "r2")
        await admit(store, "r3")
        assert await claim_names(store, OTHER_NODE, at(1)) == []
        await store.record(lease, END, at(2))
        assert await claim_names(store, OTHER_NODE, at(3)) == ["r2"]
        assert await claim_names(store, OTHER_NODE, at(4)) == []

    async def test_a_claim_takes_no_more_than_its_limit_and_the_oldest_first(self, store: Store):
        for number in range(5):
            await admit(store, f"r{number}", f"thread-{number}")
        assert await claim_names(store, NODE, at(0), limit=2) == ["r0", "r1"]
        assert await claim_names(store, NODE, at(0), limit=2) == ["r2", "r3"]
        assert await claim_names(store, NODE, at(0), limit=2) == ["r4"]

    async def test_runs_that_must_wait_for_their_thread_do_not_use_up_the_limit(self, store: Store):
        for name, thread in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c")):
            await admit(store, name, thread)
        assert await claim_names(store, NODE, at(0), limit=2) == ["a1", "b1"]
        assert await claim_names(store, NODE, at(0), limit=1) == ["c1"]

    async def test_users_take_turns_whatever_one_of_them_has_waiting(self, store: Store):
        for number in range(5):
            await admit(store, f"a{number}", f"a-{number}")
        for number in range(2):
            await admit(store, f"b{number}", f"b-{number}", owner="bob")
        await admit(store, "c0", "c-0", owner="cy")
        assert await claim_names(store, NODE, at(0), limit=4) == ["a0", "b0", "c0", "a1"]
        # Whoever has the fewest at work is next.
        await admit(store, "c1", "c-1", owner="cy")
        assert await claim_names(store, NODE, at(0), limit=2) == ["b1", "c1"]
        assert await claim_names(store, NODE, at(0)) == ["a2", "a3", "a4"]

    async def test_what_was_begun_goes_on_before_what_waits(self, store: Store):
        await begin(store, "a1", "a")
        await admit(store, "b1", "b", owner="bob")
        assert await claim_names(store, OTHER_NODE, START + LEASE, limit=1) == ["a1"]
        assert await claim_names(store, OTHER_NODE, START + LEASE, limit=1) == ["b1"]

    async def test_a_user_has_a_share_of_a_node_at_work_and_the_rest_waits(self, store: Store):
        node = replace(NODE, share=2)
        first = await store.admit(admission("a0", "a-0"), node)
        assert first.run.status == "running"
        for number in range(1, 4):
            await admit(store, f"a{number}", f"a-{number}")
        assert await claim_names(store, node, at(0)) == ["a1"]
        # A thread and a hand are free, but not for this user.
        assert (await store.admit(admission("a4", "a-4"), node)).run.status == "queued"
        assert (await store.admit(admission("b0", "b-0", owner="bob"), node)).run.status == "running"
        # Another node has a share of its own.
        assert await claim_names(store, replace(OTHER_NODE, share=1), at(0)) == ["a2"]
        await store.record(lease_of(first.run), END, at(1))
        assert await claim_names(store, node, at(1)) == ["a3"]

    async def test_a_lease_holds_until_it_runs_out_and_not_longer(self, store: Store):
        await begin(store, "r1")
        assert await claim_names(store, OTHER_NODE, START + LEASE / 2) == []
        (again,) = await store.claim(OTHER_NODE, START + LEASE, limit=1)
        assert (again.name, again.fence, again.started) == ("r1", 2, START)

    async def test_claimers_at_the_same_time_never_get_the_same_run(self, store: Store):
        for number in range(40):
            await admit(store, f"r{number}", f"thread-{number % 20}")
        claimers = [NODE, OTHER_NODE] * 8
        found = await asyncio.gather(*(store.claim(who, at(0), limit=3) for who in claimers))
        claimed = Counter(run.name for runs in found for run in runs)
        left = await claim_names(store, NODE, at(0))
        assert set(claimed.values()) == {1}
        assert sorted([*claimed, *left]) == sorted(f"r{number}" for number in range(20))

    async def test_a_lease_that_ran_out_is_taken_over_by_one_claimer_only(self, store: Store):
        await begin(store, "r1")
        found = await asyncio.gather(*(store.claim(OTHER_NODE, at(60), limit=1) for _ in range(8)))
        assert [(run.name, run.fence) for runs in found for run in runs] == [("r1", 2)]

    async def test_runs_of_one_thread_are_worked_off_in_order_by_many_claimers(self, store: Store):
        names = [f"r{number}" for number in range(9)]
        for name in names:
            await admit(store, name)
        done: list[str] = []

        async def work() -> None:
            while len(done) < len(names):
                for run in await store.claim(NODE, at(0), limit=1):
                    done.append(run.name)
                    await store.record(lease_of(run), END, at(0))

        await asyncio.gather(*(work() for _ in range(4)))
        assert done == names
