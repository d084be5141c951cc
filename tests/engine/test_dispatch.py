"""Runs are claimed on a wake, held by leases, handed back when the server stops."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recto.config.run_settings import DispatchSettings
from recto.conversation.input.run_input import RunInput
from recto.engine.dispatch import Dispatcher
from recto.engine.ports import Signal
from recto.errors import StoreDown
from recto.store.ports import (
    Admission,
    AdmissionResult,
    Cancel,
    Claimant,
    Lease,
    RunChange,
    RunEnding,
    RunQueue,
    StoredRun,
)
from recto.store.store import Store
from tests.stored_runs import OWNER, a_store, admit, an_admission, now
from tests.waiting import settle, wait_until

WHO = Claimant(node="here", boot="first", lease=timedelta(seconds=30))
BRIEF = Claimant(node="here", boot="first", lease=timedelta(seconds=0.15))
OTHER = Claimant(node="there", boot="other", lease=timedelta(seconds=30))
# The queue is only looked at when there is a wake.
ON_WAKE = DispatchSettings(look=60, grace=0.2, pause=0.01)
OFTEN = replace(ON_WAKE, look=0.01)


class Workers:
    """Work that waits until a run is let go, and what became of it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.signals: dict[str, Signal] = {}
        self.begun, self.parsed = list[str](), list[RunInput | None]()
        self.fences: list[int] = []
        self.broken_off: list[str] = []
        self.go = asyncio.Event()

    async def work(self, run: StoredRun, signal: Signal, run_input: RunInput | None) -> bool:
        self.parsed.append(run_input)
        self.begun.append(run.id)
        self.fences.append(run.fence)
        self.signals[run.id] = signal
        try:
            await self.until_signalled(signal)
        except asyncio.CancelledError:
            self.broken_off.append(run.id)
            raise
        if signal.leaving.is_set():
            return False
        outcome = "cancelled" if signal.cancelled.is_set() else "done"
        await self.store.runs.record(run.lease, RunChange(ending=RunEnding(outcome=outcome)), now())
        return True

    async def until_signalled(self, signal: Signal) -> None:
        go = asyncio.ensure_future(self.go.wait())
        try:
            waits = (go, signal.leaving.future, signal.cancelled.future)
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            go.cancel()


class Deaf(Workers):
    """Work that hears nothing and takes for ever."""

    async def until_signalled(self, signal: Signal) -> None:
        await asyncio.Event().wait()


class Faulty:
    """Runs of a store; what a test sets stands in the way of a claim or of a lease."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.claims, self.renewals, self.found = 0, 0, 0
        self.broken = self.silent = False
        self.mends_after = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def admit(self, admission: Admission, who: Claimant | None = None) -> AdmissionResult:
        return await self._store.runs.admit(admission, who)

    async def claim(self, who: Claimant, now: datetime, limit: int) -> Sequence[StoredRun]:
        self.claims += 1
        self._raise()
        match = await self._store.runs.claim(who, now, limit)
        self.found += len(match)
        await self.gate.wait()
        return match

    async def renew(self, who: Claimant, leases: Sequence[Lease], now: datetime) -> Sequence[Lease]:
        self.renewals += 1
        self._raise()
        if self.silent:
            await asyncio.Event().wait()
        return await self._store.runs.renew(who, leases, now)

    async def release(self, leases: Sequence[Lease], at: datetime) -> None:
        self.mends_after -= 1
        if self.mends_after == 0:
            self.broken = False
        self._raise()
        await self._store.runs.release(leases, at)

    async def recover(self, who: Claimant, now: datetime) -> int:
        return await self._store.runs.recover(who, now)

    async def list_cancelled(self, ids: Sequence[str]) -> Sequence[str]:
        return await self._store.runs.list_cancelled(ids)

    def _raise(self) -> None:
        if self.broken:
            raise StoreDown(problem="the disk is full")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with a_store(tmp_path) as store_in_use:
        yield store_in_use


@pytest.fixture
def workers(store: Store) -> Workers:
    return Workers(store)


@asynccontextmanager
async def dispatching(
    workers: Workers,
    *,
    runs: RunQueue | None = None,
    who: Claimant = WHO,
    clock: Callable[[], datetime] = now,
    settings: DispatchSettings = ON_WAKE,
) -> AsyncGenerator[Dispatcher]:
    dispatcher = Dispatcher(runs or workers.store.runs, who, workers.work, clock=clock, settings=settings)
    await dispatcher.start()
    try:
        yield dispatcher
    finally:
        await dispatcher.stop()


async def statuses(store: Store, runs: Sequence[StoredRun]) -> list[str]:
    match = [await store.runs.find(OWNER, run.id) for run in runs]
    return [run.outcome or run.status for run in match]


async def test_no_more_runs_are_begun_than_there_are_slots(store: Store, workers: Workers):
    runs = [await admit(store)]
    async with dispatching(workers, settings=replace(ON_WAKE, slots=2)) as dispatcher:
        await wait_until(lambda: len(workers.begun) == 1)
        # Many want the slot that is left at the same time.
        admissions = await asyncio.gather(*[dispatcher.admit(an_admission()) for _ in range(20)])
        runs += [one.run for one in admissions]
        await wait_until(lambda: len(workers.begun) == 2)
        await store.probe()
        await settle()
        assert (dispatcher.active, len(workers.begun)) == (2, 2)
        # A slot that comes free is used without anything from outside.
        workers.go.set()
        await wait_until(lambda: len(workers.begun) == 21 and dispatcher.active == 0)
        assert await statuses(store, runs) == ["done"] * 21


async def test_a_run_of_one_user_does_not_wait_for_the_fifty_that_another_has_waiting(workers: Workers):
    who = replace(WHO, share=3)
    async with dispatching(workers, who=who, settings=replace(ON_WAKE, slots=4)) as dispatcher:
        for _ in range(50):
            await dispatcher.admit(an_admission())
        await wait_until(lambda: len(workers.begun) == 3)
        # One user has no more than a share, so that somebody else need not wait at all.
        bob, cy = [(await dispatcher.admit(an_admission(owner=owner))).run for owner in ("bob", "cy")]
        await wait_until(lambda: bob.id in workers.begun)
        assert cy.id not in workers.begun
        # The next free slots go to other users.
        workers.signals[workers.begun[0]].cancelled.set()
        await wait_until(lambda: len(workers.begun) == 5)
        assert workers.begun[4] == cy.id
        workers.go.set()
        await wait_until(lambda: len(workers.begun) == 52 and dispatcher.active == 0)


async def test_P6_an_admitted_run_is_begun_at_once_and_one_whose_thread_is_busy_after_it(
    store: Store, workers: Workers
):
    run_input = RunInput(thread="t", run="r")
    async with dispatching(workers) as dispatcher:
        first = (await dispatcher.admit(replace(an_admission(), parsed=run_input))).run
        assert (first.status, first.fence, dispatcher.active) == ("running", 1, 1)
        second = (await dispatcher.admit(replace(an_admission(thread=first.thread), parsed=run_input))).run
        assert second.status == "queued"
        workers.go.set()
        await wait_until(lambda: len(workers.begun) == 2 and dispatcher.active == 0)
        assert await statuses(store, [first, second]) == ["done", "done"]
        # Of the one that had to wait nothing was kept here.
        assert workers.parsed == [run_input, None]


async def test_P6_one_run_of_a_thread_is_worked_on_at_a_time_in_the_order_they_came(store: Store, workers: Workers):
    first = await admit(store)
    second, third = await admit(store, thread=first.thread), await admit(store, thread=first.thread)
    other = await admit(store)
    async with dispatching(workers) as dispatcher:
        await wait_until(lambda: len(workers.begun) == 2)
        assert workers.begun == [first.id, other.id]
        workers.signals[first.id].cancelled.set()
        await wait_until(lambda: second.id in workers.begun)
        assert third.id not in workers.begun
        workers.go.set()
        await wait_until(lambda: dispatcher.active == 0 and len(workers.begun) == 4)
        assert await statuses(store, [first, second, third]) == ["cancelled", "done", "done"]


async def test_a_lost_lease_breaks_the_work_off(store: Store, workers: Workers):
    run = await admit(store)
    async with dispatching(workers, who=BRIEF) as dispatcher:
        await wait_until(lambda: workers.begun == [run.id])
        # Somebody else has it from now on.
        await store.runs.release((Lease(run=run.id, thread=run.thread, fence=1),), now())
        (claimed,) = await store.runs.claim(OTHER, now(), 1)
        assert (claimed.id, claimed.fence) == (run.id, 2)
        await wait_until(lambda: workers.broken_off == [run.id] and dispatcher.active == 0)
        # Handing back what is not ours takes it from nobody.
        assert await store.runs.claim(OTHER, now(), 1) == ()


async def test_a_run_whose_lease_ran_out_while_this_process_stood_still_goes_on_if_nobody_took_it(
    store: Store, workers: Workers
):
    slept, runs = timedelta(0), Faulty(store)
    run = await admit(store)
    async with dispatching(workers, runs=runs, clock=lambda: now() + slept, settings=OFTEN) as dispatcher:
        await wait_until(lambda: workers.fences == [1])
        # The machine was asleep for an hour: the lease ran out while the work stood still.
        slept, claims = timedelta(hours=1), runs.claims
        await wait_until(lambda: runs.claims > claims + 2)
        assert await store.runs.claim(OTHER, now() + slept, 1) == ()
        assert (workers.fences, workers.broken_off, dispatcher.active) == ([1], [], 1)
        workers.go.set()
        await wait_until(lambda: dispatcher.active == 0)
        assert await statuses(store, [run]) == ["done"]


@pytest.mark.parametrize("is_told", [True, False])
async def test_P8_a_cancel_reaches_the_run_though_it_is_only_in_its_row(
    store: Store, workers: Workers, *, is_told: bool
):
    run = await admit(store)
    async with dispatching(workers, who=WHO if is_told else BRIEF) as dispatcher:
        await wait_until(lambda: dispatcher.active == 1)
        if is_told:
            dispatcher.cancel("nobody")
            dispatcher.cancel(run.id)
        else:
            await store.runs.cancel(run, Cancel(reason="enough", now=now(), events=[]))
        await wait_until(lambda: dispatcher.active == 0)
        assert await statuses(store, [run]) == ["cancelled"]


async def test_P8_a_cancel_from_before_the_claim_is_known_when_the_work_begins(store: Store, workers: Workers):
    run = await admit(store)
    (claimed,) = await store.runs.claim(OTHER, now(), 1)
    await store.runs.cancel(run, Cancel(reason="enough", now=now(), events=[]))
    await store.runs.release((Lease(run=run.id, thread=run.thread, fence=claimed.fence),), now())
    async with dispatching(workers) as dispatcher:
        await wait_until(lambda: workers.begun == [run.id] and dispatcher.active == 0)
        assert await statuses(store, [run]) == ["cancelled"]


async def test_stopping_lets_a_step_finish_and_hands_the_run_back_for_anybody(store: Store, workers: Workers):
    run, waiting = await admit(store), await admit(store)
    async with dispatching(workers, settings=replace(ON_WAKE, slots=1, grace=10)) as dispatcher:
        await wait_until(lambda: workers.begun == [run.id])
        await dispatcher.stop()
        assert (workers.begun, workers.broken_off) == ([run.id], [])
        assert dispatcher.problem == "the server is stopping"
        claimed = await store.runs.claim(OTHER, now(), 9)
        assert [(one.id, one.fence) for one in claimed] == [(run.id, 2), (waiting.id, 1)]


async def test_stopping_breaks_off_what_takes_longer_than_its_grace_and_hands_it_back(store: Store):
    workers = Deaf(store)
    run = await admit(store)
    async with dispatching(workers) as dispatcher:
        await wait_until(lambda: workers.begun == [run.id])
        await dispatcher.stop()
        assert workers.broken_off == [run.id]
        (claimed,) = await store.runs.claim(OTHER, now(), 9)
        assert (claimed.id, claimed.fence) == (run.id, 2)


async def test_a_claim_under_way_when_the_server_stops_is_handed_back(store: Store, workers: Workers):
    runs = Faulty(store)
    run = await admit(store)
    runs.gate.clear()
    async with dispatching(workers, runs=runs) as dispatcher:
        await wait_until(lambda: runs.found == 1)
        stopping = asyncio.create_task(dispatcher.stop())
        await settle()
        runs.gate.set()
        await stopping
        (claimed,) = await store.runs.claim(OTHER, now(), 9)
        assert (claimed.id, claimed.fence) == (run.id, 2)


async def test_what_an_earlier_start_of_this_node_left_behind_is_taken_up_at_once(store: Store, workers: Workers):
    run = await admit(store)
    before = Claimant(node=WHO.node, boot="the one before", lease=timedelta(hours=1))
    await store.runs.claim(before, now(), 1)
    async with dispatching(workers):
        await wait_until(lambda: workers.begun == [run.id])
        assert workers.fences == [2]


async def test_a_store_that_fails_for_a_while_ends_no_loop(store: Store, workers: Workers):
    runs = Faulty(store)
    held_run = await admit(store)
    async with dispatching(workers, runs=runs, who=BRIEF, settings=OFTEN) as dispatcher:
        await wait_until(lambda: workers.begun == [held_run.id])
        runs.broken = True
        claims, renewals = runs.claims, runs.renewals
        waiting = await admit(store)
        await wait_until(lambda: runs.claims > claims + 1 and runs.renewals > renewals)
        assert dispatcher.problem is None
        assert workers.begun == [held_run.id]
        runs.broken = False
        workers.go.set()
        await wait_until(lambda: waiting.id in workers.begun and dispatcher.active == 0)
        assert await statuses(store, [held_run, waiting]) == ["done", "done"]


async def test_X4_what_cannot_be_handed_back_is_tried_again_long_before_its_lease_runs_out(store: Store):
    class Unlucky(Workers):
        async def until_signalled(self, signal: Signal) -> None:
            if len(self.begun) == 1:
                runs.broken = True
                runs.mends_after = 3
                raise StoreDown(problem="the connection was lost")

    workers, runs = Unlucky(store), Faulty(store)
    workers.go.set()
    settings = DispatchSettings(look=0.05, grace=0.2, pause=0.1)
    async with dispatching(workers, runs=runs, settings=settings) as dispatcher:
        run = (await dispatcher.admit(an_admission())).run
        await wait_until(lambda: len(workers.begun) == 2 and dispatcher.active == 0)
        assert workers.fences == [1, 2]
        assert await statuses(store, [run]) == ["done"]
        # It was not lost: whoever hands back takes its name off.
        assert (await store.runs.find(OWNER, run.id)).losses == 0


async def test_X4_leases_that_cannot_be_renewed_are_tried_again_while_they_hold(store: Store, workers: Workers):
    runs = Faulty(store)
    await admit(store)
    who = replace(WHO, lease=timedelta(seconds=1.2))
    async with dispatching(workers, runs=runs, who=who, settings=replace(ON_WAKE, pause=0.05)):
        await wait_until(lambda: len(workers.begun) == 1)
        for fault in ("broken", "silent"):
            before = runs.renewals
            setattr(runs, fault, True)
            await wait_until(lambda before=before: runs.renewals > before)
            setattr(runs, fault, False)
            await wait_until(lambda before=before: runs.renewals > before + 1)
        assert await store.runs.claim(OTHER, now(), 1) == ()
        assert workers.fences == [1]


async def test_X4_work_that_fails_as_nobody_foresaw_waits_for_its_lease_and_counts_as_lost(store: Store):
    class Broken(Workers):
        async def until_signalled(self, signal: Signal) -> None:
            raise RuntimeError("nobody foresaw this")

    workers = Broken(store)
    async with dispatching(workers) as dispatcher:
        run = (await dispatcher.admit(an_admission())).run
        await wait_until(lambda: bool(workers.begun) and dispatcher.active == 0)
        await store.probe()
        # Not handed back: that would have it tried again and again, at once.
        assert (len(workers.begun), await statuses(store, [run])) == (1, ["running"])
    (again,) = await store.runs.claim(OTHER, now() + timedelta(minutes=1), 1)
    assert (again.id, again.losses) == (run.id, 1)


async def test_the_problem_says_why_no_run_is_begun(store: Store, workers: Workers):
    dispatcher = Dispatcher(store.runs, WHO, workers.work, clock=now, settings=ON_WAKE)
    assert dispatcher.problem == "the engine has stopped"
    await dispatcher.start()
    assert dispatcher.problem is None
    await dispatcher.stop()
    assert dispatcher.problem == "the server is stopping"
    await dispatcher.stop()
    assert dispatcher.active == 0
