"""Dispatch of runs to the workers of one process: claims, leases, release; and the periodic cleanup.

A wake-up is a hint; the run row is the truth.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from recto.config.run_settings import DispatchSettings
from recto.conversation.input.run_input import RunInput
from recto.engine.ports import RunWorker, Signal
from recto.errors import RectoError, StoreError
from recto.store.ports import Admission, AdmissionResult, Claimant, Lease, RunQueue, StoredRun

LOGGER = logging.getLogger("recto.engine")
# Seconds before the second attempt to release a lease. Doubles with each attempt.
FIRST_RETRY_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class _ActiveRun:
    lease: Lease
    signal: Signal
    task: asyncio.Task[None]
    was_queued: bool


class Dispatcher:
    """The dispatcher of a process. It claims runs and starts a worker for each, until it is stopped."""

    def __init__(
        self,
        runs: RunQueue,
        claimant: Claimant,
        worker: RunWorker,
        *,
        clock: Callable[[], datetime],
        settings: DispatchSettings,
    ) -> None:
        self._runs = runs
        self._claimant = claimant
        self._worker = worker
        self._clock = clock
        self._settings = settings
        self._active: dict[str, _ActiveRun] = {}
        self._wake_up = asyncio.Event()
        self._claiming = asyncio.Lock()
        # Slots reserved for runs that an admission or claim in progress may bring.
        self._reserved = 0
        # Runs admitted here that had to wait and have not been claimed since.
        self._unclaimed = 0
        # True while runs may wait for a slot. Free slots then go out by claim order, not to the next admission.
        self._is_full = False
        self._is_stopping = False
        self._renewed_at = clock()
        self._loops: list[asyncio.Task[None]] = []

    @property
    def active(self) -> int:
        """Number of runs that this process works on."""
        return len(self._active)

    @property
    def problem(self) -> str | None:
        """Reason why this process starts no runs; None while it does."""
        if self._is_stopping:
            return "the server is stopping"
        dead = self._loops and any(loop.done() for loop in self._loops)
        return "the engine has stopped" if dead or not self._loops else None

    async def start(self) -> None:
        """Recover the runs of an earlier start of this node, then begin to claim."""
        count = await self._runs.recover(self._claimant, self._clock())
        if count:
            LOGGER.info("going on with %d runs an earlier start left behind", count)
        self._wake_up.set()
        self._loops = [asyncio.create_task(self._claim_loop()), asyncio.create_task(self._lease_loop())]

    async def admit(self, admission: Admission) -> AdmissionResult:
        """Store a run. Start it at once if its thread and a slot are free."""
        self._is_full = self._is_full or self._free_slots <= 0
        if not self._loops or self._is_stopping or self._is_full:
            result = await self._runs.admit(admission)
        else:
            self._reserved += 1
            try:
                result = await self._runs.admit(admission, self._claimant)
            finally:
                self._reserved -= 1
        if result.interrupted:
            self.cancel(result.interrupted)
        if result.is_new and result.run.status == "running":
            self._start_run(result.run, admission.parsed, was_queued=False)
        elif result.is_new:
            self._unclaimed += 1
            self._wake_up.set()
        return result

    @property
    def _free_slots(self) -> int:
        return self._settings.slots - len(self._active) - self._reserved

    def cancel(self, run: str) -> None:
        """Signal a local run to end. The cancel request itself is in the run's row."""
        active = self._active.get(run)
        if active:
            active.signal.cancelled.set()

    async def stop(self) -> None:
        """Stop claiming, let running steps finish, then interrupt and release runs that exceed the grace period."""
        if self._is_stopping:
            return
        self._is_stopping = True
        # A claim in progress may still bring runs, which must be released: wait for it.
        async with self._claiming:
            for loop in self._loops[:1]:
                loop.cancel()
        for active in self._active.values():
            active.signal.leaving.set()
        tasks = [one.task for one in self._active.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._settings.grace)
            for task in late:
                task.cancel()
            if late:
                # Abandon a task that does not end. Once its lease expires, it can write nothing.
                await asyncio.wait(late, timeout=self._settings.pause)
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)

    async def _claim_loop(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._settings.look):
                    await self._wake_up.wait()
            except TimeoutError:
                pass
            self._wake_up.clear()
            try:
                await self._claim()
            except Exception as error:  # a loop that ended would leave every run waiting
                LOGGER.warning("cannot claim: %s", error, exc_info=not isinstance(error, StoreError))
                await asyncio.sleep(self._settings.look)

    async def _claim(self) -> None:
        async with self._claiming:
            slots = self._free_slots
            if slots <= 0 or self._is_stopping:
                return
            if self._clock() - self._renewed_at > self._claimant.lease / 2:
                # This process was suspended. Renew the leases first: another process may have claimed these runs.
                await self._renew()
            self._reserved += slots
            try:
                runs = await self._runs.claim(self._claimant, self._clock(), slots)
            finally:
                self._reserved -= slots
            self._unclaimed = max(0, self._unclaimed - len(runs))
            self._is_full = len(runs) == slots
            for run in runs:
                self._start_run(run, None, was_queued=True)

    def _start_run(self, run: StoredRun, run_input: RunInput | None, *, was_queued: bool) -> None:
        stale = self._active.get(run.id)
        if stale:
            # The lease expired while this process was suspended. The new claim continues; the old one can write
            # nothing.
            stale.task.cancel()
        signal = Signal()
        if run.cancel:
            signal.cancelled.set()
        if self._is_stopping:
            signal.leaving.set()
        task = asyncio.create_task(self._run(run, signal, run_input))
        self._active[run.id] = _ActiveRun(lease=run.lease, signal=signal, task=task, was_queued=was_queued)

    async def _run(self, run: StoredRun, signal: Signal, run_input: RunInput | None) -> None:
        lease, has_ended, delay, is_lost = run.lease, False, 0.0, False
        try:
            has_ended = await self._worker(run, signal, run_input)
        except asyncio.CancelledError:
            LOGGER.info("run %s broken off", run.id, extra={"run": run.id})
        except StoreError as error:
            LOGGER.warning("run %s stopped here: %s", run.id, error, extra={"run": run.id})
            delay = self._settings.pause
        except Exception:
            # Do not release: the lease expires and the claim counts as a loss, so that the run is not retried forever.
            LOGGER.exception("run %s could not be worked on", run.id, extra={"run": run.id})
            is_lost = True
        finally:
            active = self._active.get(run.id)
            if active and active.lease == lease:
                del self._active[run.id]
            if not has_ended and not is_lost:
                await self._release(lease, delay)
            # A slot is free, and other runs may be waiting for one.
            if not has_ended or self._unclaimed or (active and active.was_queued):
                asyncio.get_running_loop().call_later(delay, self._wake_up.set)

    async def _release(self, lease: Lease, delay: float) -> None:
        """Release a lease. Retry while it may still be valid: a short database outage must not delay the run."""
        wait, deadline = FIRST_RETRY_SECONDS, self._clock() + self._claimant.lease
        while True:
            try:
                await asyncio.shield(self._runs.release((lease,), self._clock() + timedelta(seconds=delay)))
            except StoreError as error:
                if self._is_stopping or self._clock() >= deadline:
                    LOGGER.warning("run %s could not be handed back, its lease runs out: %s", lease.run, error)
                    return
            else:
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, self._settings.pause)

    async def _lease_loop(self) -> None:
        third = self._claimant.lease.total_seconds() / 3
        pause = third
        while True:
            await asyncio.sleep(pause)
            try:
                # Time out early enough to retry before the leases expire.
                async with asyncio.timeout(third):
                    await self._renew()
                pause = third
            except Exception as error:  # a loop that ended would lose every lease
                is_expected = isinstance(error, (StoreError, TimeoutError))
                LOGGER.warning("cannot renew leases: %s", str(error) or "no answer in time", exc_info=not is_expected)
                pause = min(third, self._settings.pause)

    async def _renew(self) -> None:
        active, now = dict(self._active), self._clock()
        if not active:
            self._renewed_at = now
            return
        leases = await self._runs.renew(self._claimant, [entry.lease for entry in active.values()], now)
        self._renewed_at = now
        renewed = {lease.run for lease in leases}
        for run, one in active.items():
            if run not in renewed and not one.task.done():
                one.task.cancel()
        for run in await self._runs.list_cancelled(list(renewed)):
            self.cancel(run)


# Seconds between two rounds of one task, so that cleanup does not block other writes.
PAUSE_SECONDS = 0.2


async def run_cleanup(tasks: Mapping[str, Callable[[], Awaitable[int]]], pause: float) -> None:
    """Run each cleanup task until it returns 0, pause, and repeat until cancelled. A failing task does not stop the
    others.
    """
    while True:
        for name, clean in tasks.items():
            await _run_task(name, clean)
        await asyncio.sleep(pause)


async def _run_task(name: str, clean: Callable[[], Awaitable[int]]) -> None:
    try:
        total = 0
        while count := await clean():
            total += count
            await asyncio.sleep(PAUSE_SECONDS)
        if total:
            LOGGER.info("cleaned up %d %s that were to be kept no longer", total, name)
    except Exception as error:  # a loop that ended would keep everything forever
        LOGGER.warning("could not clean up %s: %s", name, error, exc_info=not isinstance(error, RectoError))
