"""Runs: queue, leases and progress."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from recto.store.database.database import Database
from recto.store.ports import (
    Admission,
    AdmissionResult,
    Cancel,
    Claimant,
    Lease,
    RecordResult,
    RunChange,
    StoredRun,
)
from recto.store.runs import record, run_queue
from recto.store.threads import thread_rows
from recto.store.threads.thread_rows import RunList


class Runs:
    """Runs: queue, leases and progress."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def admit(self, admission: Admission, who: Claimant | None = None) -> AdmissionResult:
        """Store a run with its input, and claim it for `who` if its thread is free.

        The same request again finds the same run; another under its name: Conflict.
        """
        work = partial(run_queue.admit, admission=admission, who=who)
        return await self._database.write(work, size=len(admission.input))

    async def preview_admission(self, admission: Admission) -> StoredRun:
        """The row that a run would have, were it admitted now. Nothing is stored. Somebody else's thread: NotFound."""
        return await self._database.read(partial(run_queue.as_admitted, admission=admission))

    async def find(self, owner: str, id: str) -> StoredRun:
        """A run by the server's id or by the client's name for it. Somebody else's: NotFound."""
        return await self._database.read(partial(run_queue.find_run, owner=owner, id=id))

    async def find_of_any_user(self, id: str) -> Sequence[StoredRun]:
        """The run of a server's id; else all runs of that name, whoever has them. For who may see everything."""
        return await self._database.read(partial(run_queue.find_by_anyone, id=id))

    async def read_opening_input(self, thread: str, response_id: str) -> bytes | None:
        """The request that opened a turn; None where its run is not there."""
        return await self._database.read(partial(run_queue.opening_input, thread=thread, response_id=response_id))

    async def find_repeated(self, owner: str, name: str, digest: bytes) -> AdmissionResult | None:
        """The run a request made before; another request under its name: Conflict. None: it has to be admitted."""
        return await self._database.read(partial(run_queue.again, owner=owner, name=name, digest=digest))

    async def cancel(self, run: StoredRun, cancel: Cancel) -> StoredRun:
        """Write down that a run is to end."""
        return await self._database.write(partial(run_queue.cancel, run=run, cancel=cancel))

    async def claim(self, who: Claimant, now: datetime, limit: int) -> Sequence[StoredRun]:
        """Take up to `limit` runs that nobody works on."""
        return await self._database.write(partial(run_queue.claim, who=who, now=now, limit=limit))

    async def renew(self, who: Claimant, leases: Sequence[Lease], now: datetime) -> Sequence[Lease]:
        """Hold these leases longer. Returns those still held."""
        return await self._database.write_first(partial(run_queue.renew, who=who, leases=leases, now=now))

    async def release(self, leases: Sequence[Lease], at: datetime) -> None:
        """Give these runs up, for anybody to go on with from that time on."""
        await self._database.write_first(partial(run_queue.hand_back, leases=leases, at=at))

    async def recover(self, who: Claimant, now: datetime) -> int:
        """Free what an earlier boot of this node left claimed."""
        return await self._database.write(partial(run_queue.recover, who=who, now=now))

    async def list_cancelled(self, held: Sequence[str]) -> Sequence[str]:
        """Of these runs, those that are to end."""
        return await self._database.write_first(partial(run_queue.cancels, runs=held))

    async def record(self, lease: Lease, change: RunChange, now: datetime) -> RecordResult:
        """Write a change under its fence. Another worker has the run: LeaseLost, and nothing is written."""
        work = partial(record.record, lease=lease, change=change, now=now)
        return await self._database.write(work, size=record.size_of(change))

    async def list_page(self, owner: str, id: str, cursor: str | None, limit: int) -> RunList:
        """Runs of a thread, newest first (P8)."""
        found = partial(thread_rows.runs_of_thread, owner=owner, id=id, cursor=cursor, limit=limit)
        return await self._database.read(found)

    async def list_open(self, owner: str, id: str) -> Sequence[StoredRun]:
        """The runs of a thread that have not ended, the one at work first; none of somebody else's thread."""
        return await self._database.read(partial(thread_rows.open_runs, owner=owner, id=id))
