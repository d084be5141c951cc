"""Changes of runs: atomic, numbered without gaps, and only under the newest fence."""

import asyncio
from dataclasses import replace

import pytest

from recto.errors import Conflict, LeaseLost
from recto.store.ports import CallEnd, Lease, RunChange, RunEnding
from recto.store.store import Store
from tests.store.suite.calls import call
from tests.store.suite.samples import (
    LEASE,
    OTHER_NODE,
    START,
    admit,
    at,
    begin,
    claim_names,
    events,
    events_of,
    everything,
    lease_of,
    message_of,
)

RUNS, CHANGES = 20, 10
CALL = call(1, "a")
FULL = RunChange(
    entries=(message_of("late"),),
    events=(b"late",),
    call_start=CALL,
    call_end=CallEnd(number=1, ended=START),
    entered=True,
    failures=7,
    usage=b"{}",
    error="late",
    ending=RunEnding(outcome="late"),
)


class ChangeSuite:
    async def test_events_are_numbered_without_gaps_over_several_changes(self, store: Store):
        lease = await begin(store, "r1")
        numbers = [
            (await store.runs.record(lease, change, at(1))).last_event
            for change in (events(b"a"), events(b"b", b"c"), RunChange(), events(b"d"))
        ]
        assert numbers == [1, 3, 3, 4]
        assert await events_of(store, lease.run) == [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"d")]
        assert (await store.runs.find("ann", "r1")).last_event == 4

    async def test_entries_are_numbered_across_the_runs_of_a_thread(self, store: Store):
        first = await begin(store, "r1")
        await store.runs.record(first, RunChange(entries=(message_of("m1"), message_of("m2"))), at(1))
        await store.runs.record(
            first, RunChange(entries=(message_of("m3"),), ending=RunEnding(outcome="success")), at(2)
        )
        second = await begin(store, "r2")
        result = await store.runs.record(second, RunChange(entries=(message_of("m4"),)), at(3))
        assert result.last_seq == 4
        log = await store.log.read_after("thread-1")
        assert [(entry.id, entry.seq) for entry in log] == [("m1", 1), ("m2", 2), ("m3", 3), ("m4", 4)]

    async def test_an_entry_without_a_time_gets_the_time_of_its_change(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=(replace(message_of("m1"), time=None),)), at(9))
        assert [entry.time for entry in await store.log.read_after("thread-1")] == [at(9)]

    async def test_a_change_leaves_other_fields_as_they_are(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entered=True, failures=2, usage=b'{"n": 1}', error="slow"), at(1))
        await store.runs.record(lease, RunChange(too_long=1, can_compact=False), at(2))
        run = await store.runs.find("ann", "r1")
        assert (run.entered, run.failures, run.usage, run.error) == (True, 2, b'{"n": 1}', "slow")
        assert (run.too_long, run.can_compact, run.status) == (1, False, "running")
        await store.runs.record(lease, RunChange(failures=0, entered=False, can_compact=True), at(3))
        run = await store.runs.find("ann", "r1")
        assert (run.failures, run.entered, run.can_compact, run.too_long) == (0, False, True, 1)

    async def test_a_change_with_an_existing_entry_writes_nothing(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=(message_of("m1"),), events=(b"a",)), at(1))
        before = await everything(store, lease)
        with pytest.raises(Conflict):
            await store.runs.record(lease, replace(FULL, entries=(message_of("m2"), message_of("m1"))), at(2))
        assert await everything(store, lease) == before
        assert store.problem is None
        result = await store.runs.record(lease, RunChange(entries=(message_of("m2"),), events=(b"b",)), at(3))
        assert (result.last_event, result.last_seq) == (2, 2)

    async def test_an_ended_run_has_an_outcome_and_frees_its_thread(self, store: Store):
        lease = await begin(store, "r1")
        await admit(store, "r2")
        await store.runs.record(
            lease, RunChange(events=(b"end",), ending=RunEnding(outcome="error", error="no key")), at(7)
        )
        run = await store.runs.find("ann", "r1")
        assert (run.status, run.outcome, run.error, run.ended) == ("ended", "error", "no key", at(7))
        assert await claim_names(store, OTHER_NODE, at(7)) == ["r2"]
        assert await claim_names(store, OTHER_NODE, at(7) + LEASE) == ["r2"]

    async def test_an_error_text_may_contain_any_characters(self, store: Store):
        lease, odd, rest = await begin(store, "r1"), "a\0b\ud800c", "a\ufffdb\ufffdc"
        await store.runs.record(lease, RunChange(call_start=CALL, error=odd), at(1))
        assert (await store.runs.find("ann", "r1")).error == rest
        end = CallEnd(number=1, ended=at(2), error=odd)
        await store.runs.record(lease, RunChange(call_end=end, ending=RunEnding(outcome="error", error=odd)), at(2))
        assert (await store.runs.find("ann", "r1")).error == rest
        assert [one.error for one in await store.calls.list_full(lease.run)] == [rest]

    async def test_a_worker_without_the_lease_cannot_write(self, store: Store):
        stale = await begin(store, "r1")
        (claim,) = await store.runs.claim(OTHER_NODE, START + LEASE, limit=1)
        await expect_lost(store, stale)
        assert (await store.runs.record(lease_of(claim), events(b"mine"), at(60))).last_event == 1

    async def test_only_the_fence_of_an_active_run_can_write(self, store: Store):
        lease = await begin(store, "r1")
        for step in (-1, 1):
            await expect_lost(store, replace(lease, fence=lease.fence + step))
        await expect_lost(store, lease_of(await admit(store, "r2")))
        await store.runs.record(lease, RunChange(events=(b"end",), ending=RunEnding(outcome="success")), at(1))
        await expect_lost(store, lease)

    async def test_many_changes_at_once_leave_no_gap_in_any_run(self, store: Store):
        leases = [await begin(store, f"r{number}", f"thread-{number}") for number in range(RUNS)]
        changes = [
            (lease, RunChange(events=(b"a", b"b"), entries=(message_of(f"m{turn}"),)))
            for turn in range(CHANGES)
            for lease in leases
        ]
        result = await asyncio.gather(*(store.runs.record(lease, change, at(1)) for lease, change in changes))
        assert sorted(one.last_event for one in result) == sorted([*range(2, 2 * CHANGES + 1, 2)] * RUNS)
        for lease in leases:
            numbers = [event.number for event in await store.events.list_after(lease.run, after=0, limit=1000)]
            assert numbers == [*range(1, 2 * CHANGES + 1)]
            assert [entry.seq for entry in await store.log.read_after(lease.thread)] == [*range(1, CHANGES + 1)]

    async def test_concurrent_events_are_numbered_per_run(self, store: Store):
        leases = [await begin(store, f"r{number}", f"thread-{number}") for number in range(RUNS)]
        for turn in range(CHANGES):
            result = await asyncio.gather(*(store.events.add(lease, (b"a", b"b")) for lease in leases))
            assert [one.last_event for one in result] == [2 * turn + 2] * RUNS
        for lease in leases:
            assert [number for number, _ in await events_of(store, lease.run)] == [*range(1, 2 * CHANGES + 1)]

    async def test_a_lost_lease_in_a_batch_does_not_affect_other_runs(self, store: Store):
        good, bad = await begin(store, "r1", "thread-1"), await begin(store, "r2", "thread-2")
        stale = replace(bad, fence=bad.fence + 1)
        outcomes = await asyncio.gather(
            store.events.add(good, (b"a",)),
            store.events.add(stale, (b"b",)),
            store.events.add(good, (b"c",)),
            return_exceptions=True,
        )
        assert [type(one).__name__ for one in outcomes] == ["RecordResult", "LeaseLost", "RecordResult"]
        assert await events_of(store, good.run) == [(1, b"a"), (2, b"c")]
        assert await events_of(store, bad.run) == []


async def expect_lost(store: Store, lease: Lease) -> None:
    """Check that a full change under this lease is rejected and stores nothing."""
    before = await everything(store, lease)
    with pytest.raises(LeaseLost):
        await store.runs.record(lease, FULL, at(50))
    assert await everything(store, lease) == before
    assert store.problem is None
