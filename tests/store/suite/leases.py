"""What a store promises of leases: renewed, handed back, recovered by their own node only."""

from dataclasses import replace

from recto.store.ports import RunChange, RunEnding
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
    lease_of,
)

REBOOTED = replace(NODE, boot="boot-9")


class LeaseSuite:
    async def test_a_renewed_lease_holds_longer(self, store: Store):
        lease = await begin(store, "r1")
        assert list(await store.renew(NODE, [lease], START + LEASE / 2)) == [lease]
        assert await claim_names(store, OTHER_NODE, START + LEASE) == []
        assert await claim_names(store, OTHER_NODE, START + LEASE * 1.5) == ["r1"]

    async def test_only_leases_still_held_are_renewed(self, store: Store):
        held, lost, ended = [await begin(store, name, name) for name in ("held", "lost", "ended")]
        await store.record(ended, RunChange(ending=RunEnding(outcome="success")), at(1))
        await store.hand_back([lost], at(1))
        assert await claim_names(store, OTHER_NODE, at(1)) == ["lost"]
        unknown = replace(held, run="nobody's")
        wrong = replace(held, fence=held.fence + 1)
        assert list(await store.renew(NODE, [ended, lost, unknown, held, wrong], at(2))) == [held]
        assert list(await store.renew(NODE, [], at(2))) == []

    async def test_a_run_handed_back_can_be_claimed_at_once(self, store: Store):
        kept, given = await begin(store, "kept", "a"), await begin(store, "given", "b")
        await store.hand_back([given], at(1))
        (run,) = await store.claim(OTHER_NODE, at(1), limit=5)
        assert (run.name, run.fence) == ("given", 2)
        assert (await store.find_run("ann", "kept")).fence == kept.fence

    async def test_a_lease_that_was_lost_cannot_be_handed_back(self, store: Store):
        old = await begin(store, "r1")
        (new,) = await store.claim(OTHER_NODE, START + LEASE, limit=1)
        await store.hand_back([old], START + LEASE)
        assert await claim_names(store, NODE, START + LEASE) == []
        assert (await store.record(lease_of(new), events(b"e"), START + LEASE)).last_event == 1

    async def test_recovery_frees_what_an_earlier_boot_of_this_node_held_and_nothing_else(self, store: Store):
        await begin(store, "earlier", "a")
        await admit(store, "other", "b")
        assert await claim_names(store, OTHER_NODE, at(0)) == ["other"]
        await admit(store, "mine", "c")
        assert await claim_names(store, REBOOTED, at(0)) == ["mine"]
        assert await store.recover(REBOOTED, at(1)) == 1
        assert await claim_names(store, REBOOTED, at(1)) == ["earlier"]

    async def test_recovery_frees_nothing_twice_and_nothing_that_ended(self, store: Store):
        done, left = await begin(store, "done", "a"), await begin(store, "left", "b")
        await store.record(done, RunChange(ending=RunEnding(outcome="success")), at(0))
        assert await store.recover(REBOOTED, at(1)) == 1
        assert await store.recover(REBOOTED, at(1)) == 0
        (run,) = await store.claim(REBOOTED, at(1), limit=5)
        assert (run.id, run.fence) == (left.run, left.fence + 1)
