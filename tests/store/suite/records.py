"""What a store promises of changes: whole or not at all, numbered without gaps, and only under the newest fence."""

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
    said,
)

RUNS, CHANGES = 20, 10
CALL = call(1, "a")
FULL = RunChange(
    entries=(said("late"),),
    events=(b"late",),
    call_start=CALL,
    call_end=CallEnd(number=1, ended=START),
    entered=True,
    failures=7,
    usage=b"{}",
    error="late",
    ending=RunEnding(outcome="late"),
)


class RecordSuite:
    async def test_events_are_numbered_without_gaps_over_several_changes(self, store: Store):
        lease = await begin(store, "r1")
        numbers = [
            (await store.runs.record(lease, change, at(1))).last_event
            for change in (events(b"a"), events(b"b", b"c"), RunChange(), events(b"d"))
        ]
        assert numbers == [1, 3, 3, 4]
        assert await events_of(store, lease.run) == [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"d")]
        assert (await store.runs.find("ann", "r1")).last_event == 4

    async def test_entries_follow_one_another_over_the_runs_of_a_thread(self, store: Store):
        first = await begin(store, "r1")
        await store.runs.record(first, RunChange(entries=(said("m1"), said("m2"))), at(1))
        await store.runs.record(first, RunChange(entries=(said("m3"),), ending=RunEnding(outcome="success")), at(2))
        second = await begin(store, "r2")
        written = await store.runs.record(second, RunChange(entries=(said("m4"),)), at(3))
        assert written.last_seq == 4
        log = await store.log.read_after("thread-1")
        assert [(entry.id, entry.seq) for entry in log] == [("m1", 1), ("m2", 2), ("m3", 3), ("m4", 4)]

    async def test_an_entry_without_a_time_takes_that_of_its_change(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=(replace(said("m1"), time=None),)), at(9))
        assert [entry.time for entry in await store.log.read_after("thread-1")] == [at(9)]

    async def test_a_change_sets_what_it_names_and_leaves_the_rest(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entered=True, failures=2, usage=b'{"n": 1}', error="slow"), at(1))
        await store.runs.record(lease, RunChange(too_long=1, can_compact=False), at(2))
        run = await store.runs.find("ann", "r1")
        assert (run.entered, run.failures, run.usage, run.error) == (True, 2, b'{"n": 1}', "slow")
        assert (run.too_long, run.can_compact, run.status) == (1, False, "running")
        await store.runs.record(lease, RunChange(failures=0, entered=False, can_compact=True), at(3))
        run = await store.runs.find("ann", "r1")
        assert (run.failures, run.entered, run.can_compact, run.too_long) == (0, False, True, 1)

    async def test_a_change_with_an_entry_the_log_has_already_writes_nothing(self, store: Store):
        lease = await begin(store, "r1")
        await store.runs.record(lease, RunChange(entries=(said("m1"),), events=(b"a",)), at(1))
        before = await everything(store, lease)
        with pytest.raises(Conflict):
            await store.runs.record(lease, replace(FULL, entries=(said("m2"), said("m1"))), at(2))
        assert await everything(store, lease) == before
        assert store.problem is None
        written = await store.runs.record(lease, RunChange(entries=(said("m2"),), events=(b"b",)), at(3))
        assert (written.last_event, written.last_seq) == (2, 2)

    async def test_a_run_that_ended_says_how_and_frees_its_thread(self, store: Store):
        lease = await begin(store, "r1")
        await admit(store, "r2")
        await store.runs.record(
            lease, RunChange(events=(b"end",), ending=RunEnding(outcome="error", error="no key")), at(7)
        )
        run = await store.runs.find("ann", "r1")
        assert (run.status, run.outcome, run.error, run.ended) == ("ended", "error", "no key", at(7))
        assert await claim_names(store, OTHER_NODE, at(7)) == ["r2"]
        assert await claim_names(store, OTHER_NODE, at(7) + LEASE) == ["r2"]

    async def test_what_a_provider_says_of_a_fault_is_kept_whatever_is_in_it(self, store: Store):
        lease, odd, kept = await begin(store, "r1"), "a\0b\ud800c", "a\ufffdb\ufffdc"
        await store.runs.record(lease, RunChange(call_start=CALL, error=odd), at(1))
        assert (await store.runs.find("ann", "r1")).error == kept
        ended = CallEnd(number=1, ended=at(2), error=odd)
        await store.runs.record(lease, RunChange(call_end=ended, ending=RunEnding(outcome="error", error=odd)), at(2))
        assert (await store.runs.find("ann", "r1")).error == kept
        assert [one.error for one in await store.calls.list_full(lease.run)] == [kept]

    async def test_who_lost_a_run_to_another_can_write_nothing(self, store: Store):
        lost = await begin(store, "r1")
        (taken,) = await store.runs.claim(OTHER_NODE, START + LEASE, limit=1)
        await expect_lost(store, lost)
        assert (await store.runs.record(lease_of(taken), events(b"mine"), at(60))).last_event == 1

    async def test_only_the_fence_of_a_run_that_is_at_work_writes(self, store: Store):
        lease = await begin(store, "r1")
        for step in (-1, 1):
            await expect_lost(store, replace(lease, fence=lease.fence + step))
        await expect_lost(store, lease_of(await admit(store, "r2")))
        await store.runs.record(lease, RunChange(events=(b"end",), ending=RunEnding(outcome="success")), at(1))
        await expect_lost(store, lease)

    async def test_many_changes_at_once_leave_no_gap_in_any_run(self, store: Store):
        leases = [await begin(store, f"r{number}", f"thread-{number}") for number in range(RUNS)]
        changes = [
            (lease, RunChange(events=(b"a", b"b"), entries=(said(f"m{turn}"),)))
            for turn in range(CHANGES)
            for lease in leases
        ]
        written = await asyncio.gather(*(store.runs.record(lease, change, at(1)) for lease, change in changes))
        assert sorted(one.last_event for one in written) == sorted([*range(2, 2 * CHANGES + 1, 2)] * RUNS)
        for lease in leases:
            numbers = [event.number for event in await store.events.list_after(lease.run, after=0, limit=1000)]
            assert numbers == [*range(1, 2 * CHANGES + 1)]
            assert [entry.seq for entry in await store.log.read_after(lease.thread)] == [*range(1, CHANGES + 1)]

    async def test_what_many_runs_say_at_once_is_numbered_in_each(self, store: Store):
        leases = [await begin(store, f"r{number}", f"thread-{number}") for number in range(RUNS)]
        for turn in range(CHANGES):
            written = await asyncio.gather(*(store.events.add(lease, (b"a", b"b")) for lease in leases))
            assert [one.last_event for one in written] == [2 * turn + 2] * RUNS
        for lease in leases:
            assert [number for number, _ in await events_of(store, lease.run)] == [*range(1, 2 * CHANGES + 1)]

    async def test_who_lost_a_run_says_nothing_more_and_spoils_no_other(self, store: Store):
        good, bad = await begin(store, "r1", "thread-1"), await begin(store, "r2", "thread-2")
        lost = replace(bad, fence=bad.fence + 1)
        outcomes = await asyncio.gather(
            store.events.add(good, (b"a",)),
            store.events.add(lost, (b"b",)),
            store.events.add(good, (b"c",)),
            return_exceptions=True,
        )
        assert [type(one).__name__ for one in outcomes] == ["RecordResult", "LeaseLost", "RecordResult"]
        assert await events_of(store, good.run) == [(1, b"a"), (2, b"c")]
        assert await events_of(store, bad.run) == []


async def expect_lost(store: Store, lease: Lease) -> None:
    """A full change under this lease is refused, and nothing of it is there."""
    before = await everything(store, lease)
    with pytest.raises(LeaseLost):
        await store.runs.record(lease, FULL, at(50))
    assert await everything(store, lease) == before
    assert store.problem is None
