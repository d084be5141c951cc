"""Claims, leases, lists and cancellation of runs."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count

from recto.conversation.json import dump
from recto.store.ports import Admission, Cancel, RunChange, RunEnding
from recto.store.store import Store
from tests.store.suite.samples import (
    LEASE,
    NODE,
    OTHER_NODE,
    START,
    admission,
    admit,
    all_pages,
    at,
    begin,
    claim_names,
    events,
    events_of,
    lease_of,
)

END = RunChange(ending=RunEnding(outcome="success"))
REBOOTED = replace(NODE, boot="boot-9")
WISH = Cancel(reason="user", now=at(3), events=(b"started", b"cancelled"))
LATER = Cancel(reason="timeout", now=at(4), events=(b"other",))


class ClaimSuite:
    async def test_a_claimed_run_is_running_under_its_first_fence(self, store: Store):
        await admit(store, "r1")
        (run,) = await store.runs.claim(NODE, at(5), limit=1)
        assert (run.status, run.fence, run.started) == ("running", 1, at(5))
        assert await store.runs.find("ann", "r1") == run

    async def test_one_run_of_a_thread_is_active_at_a_time(self, store: Store):
        lease = await begin(store, "r1")
        await admit(store, "r2")
        await admit(store, "r3")
        assert await claim_names(store, OTHER_NODE, at(1)) == []
        await store.runs.record(lease, END, at(2))
        assert await claim_names(store, OTHER_NODE, at(3)) == ["r2"]
        assert await claim_names(store, OTHER_NODE, at(4)) == []

    async def test_a_claim_returns_the_oldest_runs_up_to_its_limit(self, store: Store):
        for number in range(5):
            await admit(store, f"r{number}", f"thread-{number}")
        assert await claim_names(store, NODE, at(0), limit=2) == ["r0", "r1"]
        assert await claim_names(store, NODE, at(0), limit=2) == ["r2", "r3"]
        assert await claim_names(store, NODE, at(0), limit=2) == ["r4"]

    async def test_blocked_runs_do_not_count_for_the_limit(self, store: Store):
        for name, thread in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c")):
            await admit(store, name, thread)
        assert await claim_names(store, NODE, at(0), limit=2) == ["a1", "b1"]
        assert await claim_names(store, NODE, at(0), limit=1) == ["c1"]

    async def test_users_take_turns(self, store: Store):
        for number in range(5):
            await admit(store, f"a{number}", f"a-{number}")
        for number in range(2):
            await admit(store, f"b{number}", f"b-{number}", owner="bob")
        await admit(store, "c0", "c-0", owner="cy")
        assert await claim_names(store, NODE, at(0), limit=4) == ["a0", "b0", "c0", "a1"]
        # The user with the fewest active runs is next.
        await admit(store, "c1", "c-1", owner="cy")
        assert await claim_names(store, NODE, at(0), limit=2) == ["b1", "c1"]
        assert await claim_names(store, NODE, at(0)) == ["a2", "a3", "a4"]

    async def test_expired_runs_are_claimed_before_queued_ones(self, store: Store):
        await begin(store, "a1", "a")
        await admit(store, "b1", "b", owner="bob")
        assert await claim_names(store, OTHER_NODE, START + LEASE, limit=1) == ["a1"]
        assert await claim_names(store, OTHER_NODE, START + LEASE, limit=1) == ["b1"]

    async def test_a_user_has_a_limited_share_of_a_node(self, store: Store):
        node = replace(NODE, share=2)
        first = await store.runs.admit(admission("a0", "a-0"), node)
        assert first.run.status == "running"
        for number in range(1, 4):
            await admit(store, f"a{number}", f"a-{number}")
        assert await claim_names(store, node, at(0)) == ["a1"]
        # The thread and the node are free, but this user's share is used up.
        assert (await store.runs.admit(admission("a4", "a-4"), node)).run.status == "queued"
        assert (await store.runs.admit(admission("b0", "b-0", owner="bob"), node)).run.status == "running"
        # Shares are per node.
        assert await claim_names(store, replace(OTHER_NODE, share=1), at(0)) == ["a2"]
        await store.runs.record(lease_of(first.run), END, at(1))
        assert await claim_names(store, node, at(1)) == ["a3"]

    async def test_a_run_can_be_claimed_when_its_lease_expires(self, store: Store):
        await begin(store, "r1")
        assert await claim_names(store, OTHER_NODE, START + LEASE / 2) == []
        (again,) = await store.runs.claim(OTHER_NODE, START + LEASE, limit=1)
        assert (again.name, again.fence, again.started) == ("r1", 2, START)

    async def test_concurrent_claims_never_return_the_same_run(self, store: Store):
        for number in range(40):
            await admit(store, f"r{number}", f"thread-{number % 20}")
        claimers = [NODE, OTHER_NODE] * 8
        results = await asyncio.gather(*(store.runs.claim(who, at(0), limit=3) for who in claimers))
        claimed = Counter(run.name for runs in results for run in runs)
        rest = await claim_names(store, NODE, at(0))
        assert set(claimed.values()) == {1}
        assert sorted([*claimed, *rest]) == sorted(f"r{number}" for number in range(20))

    async def test_one_claimer_takes_over_an_expired_lease(self, store: Store):
        await begin(store, "r1")
        results = await asyncio.gather(*(store.runs.claim(OTHER_NODE, at(60), limit=1) for _ in range(8)))
        assert [(run.name, run.fence) for runs in results for run in runs] == [("r1", 2)]

    async def test_many_claimers_process_a_thread_in_order(self, store: Store):
        names = [f"r{number}" for number in range(9)]
        for name in names:
            await admit(store, name)
        done: list[str] = []

        async def work() -> None:
            while len(done) < len(names):
                for run in await store.runs.claim(NODE, at(0), limit=1):
                    done.append(run.name)
                    await store.runs.record(lease_of(run), END, at(0))

        await asyncio.gather(*(work() for _ in range(4)))
        assert done == names

    async def test_renewing_extends_a_lease(self, store: Store):
        lease = await begin(store, "r1")
        assert list(await store.runs.renew(NODE, [lease], START + LEASE / 2)) == [lease]
        assert await claim_names(store, OTHER_NODE, START + LEASE) == []
        assert await claim_names(store, OTHER_NODE, START + LEASE * 1.5) == ["r1"]

    async def test_only_held_leases_are_renewed(self, store: Store):
        active, stale, end = [await begin(store, name, name) for name in ("held", "lost", "ended")]
        await store.runs.record(end, RunChange(ending=RunEnding(outcome="success")), at(1))
        await store.runs.release([stale], at(1))
        assert await claim_names(store, OTHER_NODE, at(1)) == ["lost"]
        unknown = replace(active, run="nobody's")
        wrong = replace(active, fence=active.fence + 1)
        assert list(await store.runs.renew(NODE, [end, stale, unknown, active, wrong], at(2))) == [active]
        assert list(await store.runs.renew(NODE, [], at(2))) == []

    async def test_a_released_run_can_be_claimed_at_once(self, store: Store):
        rest, base = await begin(store, "kept", "a"), await begin(store, "given", "b")
        await store.runs.release([base], at(1))
        (run,) = await store.runs.claim(OTHER_NODE, at(1), limit=5)
        assert (run.name, run.fence) == ("given", 2)
        assert (await store.runs.find("ann", "kept")).fence == rest.fence

    async def test_a_lost_lease_cannot_be_released(self, store: Store):
        old = await begin(store, "r1")
        (new,) = await store.runs.claim(OTHER_NODE, START + LEASE, limit=1)
        await store.runs.release([old], START + LEASE)
        assert await claim_names(store, NODE, START + LEASE) == []
        assert (await store.runs.record(lease_of(new), events(b"e"), START + LEASE)).last_event == 1

    async def test_recovery_releases_claims_of_an_earlier_boot_only(self, store: Store):
        await begin(store, "earlier", "a")
        await admit(store, "other", "b")
        assert await claim_names(store, OTHER_NODE, at(0)) == ["other"]
        await admit(store, "mine", "c")
        assert await claim_names(store, REBOOTED, at(0)) == ["mine"]
        assert await store.runs.recover(REBOOTED, at(1)) == 1
        assert await claim_names(store, REBOOTED, at(1)) == ["earlier"]

    async def test_recovery_is_idempotent_and_ignores_ended_runs(self, store: Store):
        done, rest = await begin(store, "done", "a"), await begin(store, "left", "b")
        await store.runs.record(done, RunChange(ending=RunEnding(outcome="success")), at(0))
        assert await store.runs.recover(REBOOTED, at(1)) == 1
        assert await store.runs.recover(REBOOTED, at(1)) == 0
        (run,) = await store.runs.claim(REBOOTED, at(1), limit=5)
        assert (run.id, run.fence) == (rest.run, rest.fence + 1)

    async def test_P6_runs_start_in_the_order_of_admission(self, store: Store):
        behind = ids_behind()
        await store.runs.admit(behind("first"))
        later = await store.runs.admit(behind("second"), NODE)
        assert later.run.status == "queued"
        assert await claim_names(store, NODE, at(0)) == ["first"]

    async def test_users_take_turns_in_the_order_of_admission(self, store: Store):
        behind = ids_behind()
        for name, owner in (("a1", "ann"), ("b1", "bob"), ("a2", "ann"), ("b2", "bob")):
            await store.runs.admit(behind(name, thread=name, owner=owner))
        assert await claim_names(store, NODE, at(0)) == ["a1", "b1", "a2", "b2"]

    async def test_P8_runs_are_listed_newest_first(self, store: Store):
        behind = ids_behind()
        for number in range(5):
            await store.runs.admit(behind(f"r{number}"))
        await store.runs.admit(behind("elsewhere", thread="thread-2"))
        pages = await all_pages(lambda cursor: store.runs.list_page("ann", "thread-1", cursor, 2))
        # Inputs may be long and are not read for a list.
        assert [(run.name, run.input) for page in pages for run in page.runs] == [
            (f"r{n}", b"") for n in (4, 3, 2, 1, 0)
        ]

    async def test_P13_queued_messages_have_the_order_of_admission(self, store: Store):
        behind = ids_behind()
        for name in ("w1", "w2", "w3"):
            await store.runs.admit(behind(name))
        assert [one.run for one in await store.messages.list_queued("thread-1")] == ["w1", "w2", "w3"]
        size = len(behind("w4").input)
        assert [one.run for one in await store.messages.list_queued("thread-1", 2 * size)] == ["w1", "w2"]

    async def test_a_cancelled_queued_run_ends_at_once_with_the_given_events(self, store: Store):
        run = await store.runs.cancel(await admit(store, "r1"), WISH)
        assert (run.status, run.outcome, run.cancel, run.ended) == ("ended", "cancelled", "user", at(3))
        assert run.last_event == 2
        assert await events_of(store, run.id) == [(1, b"started"), (2, b"cancelled")]
        assert await store.runs.find("ann", "r1") == run
        assert await claim_names(store, NODE, at(5)) == []
        # An ended run stays as it is.
        assert await store.runs.cancel(run, LATER) == run

    async def test_an_active_run_learns_of_its_cancellation_with_its_next_change(self, store: Store):
        lease = await begin(store, "r1")
        assert (await store.runs.cancel(await admit(store, "r2"), WISH)).status == "ended"
        assert (await store.runs.record(lease, events(b"a"), at(1))).cancel is None
        run = await store.runs.cancel(await store.runs.find("ann", "r1"), WISH)
        assert (run.status, run.cancel, run.last_event) == ("running", "user", 1)
        assert (await store.runs.record(lease, events(b"b"), at(4))).cancel == "user"
        assert await events_of(store, lease.run) == [(1, b"a"), (2, b"b")]

    async def test_a_cancellation_survives_a_takeover(self, store: Store):
        await begin(store, "r1")
        await store.runs.cancel(await store.runs.find("ann", "r1"), WISH)
        (run,) = await store.runs.claim(OTHER_NODE, START + LEASE, limit=1)
        assert run.cancel == "user"
        assert (await store.runs.record(lease_of(run), RunChange(), at(60))).cancel == "user"

    async def test_the_first_reason_to_cancel_stays(self, store: Store):
        run = await store.runs.find("ann", (await begin(store, "r1")).run)
        first = await store.runs.cancel(run, WISH)
        assert await store.runs.cancel(run, LATER) == first
        assert (first.cancel, await events_of(store, run.id)) == ("user", [])

    async def test_concurrent_cancellations_end_a_run_once(self, store: Store):
        waiting = await admit(store, "r1")
        results = await asyncio.gather(*(store.runs.cancel(waiting, WISH) for _ in range(8)))
        assert {run.status for run in results} == {"ended"}
        assert await events_of(store, waiting.id) == [(1, b"started"), (2, b"cancelled")]

    async def test_a_concurrent_cancellation_ends_a_run_or_reaches_its_worker(self, store: Store):
        waiting = [await admit(store, f"r{number}", f"thread-{number}") for number in range(10)]
        claims = [store.runs.claim(NODE, at(0), limit=1) for _ in waiting]
        cancels = [store.runs.cancel(run, WISH) for run in waiting]
        claimed, cancelled = await asyncio.gather(asyncio.gather(*claims), asyncio.gather(*cancels))
        for run in (run for runs in claimed for run in runs):
            assert (await store.runs.record(lease_of(run), events(b"a"), at(1))).cancel == "user"
        started = {run.id for runs in claimed for run in runs}
        assert {run.id for run in cancelled if run.status == "ended"} == {run.id for run in waiting} - started

    async def test_cancelled_runs_are_listed(self, store: Store):
        one, two = await begin(store, "r1", "a"), await begin(store, "r2", "b")
        three = await begin(store, "r3", "c")
        await store.runs.cancel(await store.runs.find("ann", "r2"), WISH)
        await store.runs.cancel(await store.runs.find("ann", "r3"), WISH)
        assert list(await store.runs.list_cancelled([one.run, two.run])) == [two.run]
        assert sorted(await store.runs.list_cancelled([three.run, two.run, "nobody's"])) == sorted([two.run, three.run])
        assert list(await store.runs.list_cancelled([])) == []


def ids_behind() -> Callable[..., Admission]:
    """Return a maker of admissions from machines whose clocks are further and further behind."""
    numbers = count(1)

    def make(name: str, *, thread: str = "thread-1", owner: str = "ann") -> Admission:
        number = next(numbers)
        message = {"role": "user", "id": f"m-{name}", "content": "Hello"}
        input = dump({"threadId": "t", "runId": name, "messages": [message]})
        base = admission(name, thread, owner=owner, input=input)
        id = f"00000000-0000-7000-8000-{10_000 - number:012}"
        return replace(base, id=id, created=base.created - number * timedelta(hours=1))

    return make
