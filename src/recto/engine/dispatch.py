"""How runs reach workers in one process: claim, hold the lease, hand back. A wake is a hint, the run row the truth."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from recto.config.run_settings import DispatchSettings
from recto.conversation.input.run_input import RunInput
from recto.engine.ports import RunWorker, Signal
from recto.errors import StoreError
from recto.store.ports import Admission, Admitted, Claimant, Lease, Runs, StoredRun

LOGGER = logging.getLogger("recto.engine")
# Until handing back is tried for the second time, in seconds; then twice as long each time.
FIRST_WAIT = 0.1


@dataclass(frozen=True, kw_only=True)
class _Held:
    lease: Lease
    signal: Signal
    task: asyncio.Task[None]
    waited: bool


class Dispatcher:
    """Claims runs and has them worked on, until it is stopped."""

    def __init__(
        self, runs: Runs, who: Claimant, work: RunWorker, *, clock: Callable[[], datetime], settings: DispatchSettings
    ) -> None:
        self._runs = runs
        self._who = who
        self._work = work
        self._clock = clock
        self._settings = settings
        self._held: dict[str, _Held] = {}
        self._wanted = asyncio.Event()
        self._claiming = asyncio.Lock()
        # Runs that may turn out to be ours: each has a slot until that is known.
        self._arriving = 0
        # Runs admitted here that had to wait and were not claimed since.
        self._behind = 0
        # Whether runs may wait for a slot: those that come free are given out in turn, not to whoever comes.
        self._is_full = False
        self._stopping = False
        self._renewed = clock()
        self._loops: list[asyncio.Task[None]] = []

    @property
    def active(self) -> int:
        """How many runs are being worked on here."""
        return len(self._held)

    @property
    def problem(self) -> str | None:
        """Why no run is begun here at present; None while they are."""
        if self._stopping:
            return "the server is stopping"
        dead = self._loops and any(loop.done() for loop in self._loops)
        return "the engine has stopped" if dead or not self._loops else None

    async def start(self) -> None:
        """Free what this node left behind when it last ended, then begin to claim."""
        count = await self._runs.recover(self._who, self._clock())
        if count:
            LOGGER.info("going on with %d runs an earlier start left behind", count)
        self._wanted.set()
        self._loops = [asyncio.create_task(self._claim_loop()), asyncio.create_task(self._lease_loop())]

    async def admit(self, admission: Admission) -> Admitted:
        """Store a run. It is begun at once where its thread and a slot are free; else it waits for them."""
        self._is_full = self._is_full or self._free <= 0
        if not self._loops or self._stopping or self._is_full:
            admitted = await self._runs.admit(admission)
        else:
            self._arriving += 1
            try:
                admitted = await self._runs.admit(admission, self._who)
            finally:
                self._arriving -= 1
        if admitted.interrupted:
            self.cancel(admitted.interrupted)
        if admitted.is_new and admitted.run.status == "running":
            self._begin(admitted.run, admission.parsed, waited=False)
        elif admitted.is_new:
            self._behind += 1
            self._wanted.set()
        return admitted

    @property
    def _free(self) -> int:
        return self._settings.slots - len(self._held) - self._arriving

    def cancel(self, run: str) -> None:
        """Tell a run worked on here that it is to end. The request itself is in the run's row."""
        held = self._held.get(run)
        if held:
            held.signal.cancelled.set()

    async def stop(self) -> None:
        """Claim no more; let running steps finish; break off and hand back what takes too long."""
        if self._stopping:
            return
        self._stopping = True
        # What a claim under way takes is ours to hand back, so it is waited for.
        async with self._claiming:
            for loop in self._loops[:1]:
                loop.cancel()
        for held in self._held.values():
            held.signal.leaving.set()
        tasks = [held.task for held in self._held.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._settings.grace)
            for task in late:
                task.cancel()
            if late:
                # A task that will not end is left behind: its lease runs out, and its fence is broken.
                await asyncio.wait(late, timeout=self._settings.pause)
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)

    async def _claim_loop(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._settings.look):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            try:
                await self._claim()
            except Exception as error:  # a loop that ended would leave every run waiting
                LOGGER.warning("cannot claim: %s", error, exc_info=not isinstance(error, StoreError))
                await asyncio.sleep(self._settings.look)

    async def _claim(self) -> None:
        async with self._claiming:
            free = self._free
            if free <= 0 or self._stopping:
                return
            if self._clock() - self._renewed > self._who.lease / 2:
                # This process stood still for long. What is at work here is still ours, unless somebody took it.
                await self._renew()
            self._arriving += free
            try:
                found = await self._runs.claim(self._who, self._clock(), free)
            finally:
                self._arriving -= free
            self._behind = max(0, self._behind - len(found))
            self._is_full = len(found) == free
            for run in found:
                self._begin(run, None, waited=True)

    def _begin(self, run: StoredRun, parsed: RunInput | None, *, waited: bool) -> None:
        stale = self._held.get(run.id)
        if stale:
            # Its lease ran out while this process stood still. The new claim goes on; the old one can write nothing.
            stale.task.cancel()
        signal = Signal()
        if run.cancel:
            signal.cancelled.set()
        if self._stopping:
            signal.leaving.set()
        task = asyncio.create_task(self._do(run, signal, parsed))
        self._held[run.id] = _Held(lease=run.lease, signal=signal, task=task, waited=waited)

    async def _do(self, run: StoredRun, signal: Signal, parsed: RunInput | None) -> None:
        lease, ended, rest, is_lost = run.lease, False, 0.0, False
        try:
            ended = await self._work(run, signal, parsed)
        except asyncio.CancelledError:
            LOGGER.info("run %s broken off", run.id, extra={"run": run.id})
        except StoreError as error:
            LOGGER.warning("run %s stopped here: %s", run.id, error, extra={"run": run.id})
            rest = self._settings.pause
        except Exception:
            # Not handed back: its lease runs out, and it counts as lost, so that it is not tried for ever.
            LOGGER.exception("run %s could not be worked on", run.id, extra={"run": run.id})
            is_lost = True
        finally:
            held = self._held.get(run.id)
            if held and held.lease == lease:
                del self._held[run.id]
            if not ended and not is_lost:
                await self._hand_back(lease, rest)
            # Where one had to wait, others may.
            if not ended or self._behind or (held and held.waited):
                asyncio.get_running_loop().call_later(rest, self._wanted.set)

    async def _hand_back(self, lease: Lease, rest: float) -> None:
        """Tried again for as long as the lease may hold: a store that was away for a moment is back soon."""
        wait, until = FIRST_WAIT, self._clock() + self._who.lease
        while True:
            try:
                await asyncio.shield(self._runs.hand_back((lease,), self._clock() + timedelta(seconds=rest)))
            except StoreError as error:
                if self._stopping or self._clock() >= until:
                    LOGGER.warning("run %s could not be handed back, its lease runs out: %s", lease.run, error)
                    return
            else:
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, self._settings.pause)

    async def _lease_loop(self) -> None:
        third = self._who.lease.total_seconds() / 3
        pause = third
        while True:
            await asyncio.sleep(pause)
            try:
                # A store that does not answer is asked again while there is time.
                async with asyncio.timeout(third):
                    await self._renew()
                pause = third
            except Exception as error:  # a loop that ended would lose every lease
                is_known = isinstance(error, (StoreError, TimeoutError))
                LOGGER.warning("cannot renew leases: %s", str(error) or "no answer in time", exc_info=not is_known)
                pause = min(third, self._settings.pause)

    async def _renew(self) -> None:
        held, now = dict(self._held), self._clock()
        if not held:
            self._renewed = now
            return
        kept = await self._runs.renew(self._who, [one.lease for one in held.values()], now)
        self._renewed = now
        still = {lease.run for lease in kept}
        for run, one in held.items():
            if run not in still and not one.task.done():
                one.task.cancel()
        for run in await self._runs.cancels(list(still)):
            self.cancel(run)
