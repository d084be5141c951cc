"""The store: every method one transaction, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import date, datetime
from functools import partial

from sqlalchemy import Connection, text

from recto.page import Entry
from recto.store import (
    calls,
    cleaning,
    deleting,
    export,
    forks,
    history,
    progress,
    queued,
    reads,
    runs,
    seen,
    spending,
    threads,
)
from recto.store.chorus import Chorus
from recto.store.database import Database
from recto.store.filed import FiledStore
from recto.store.opening import check_url, open_database
from recto.store.ports import (
    Admission,
    Admitted,
    Cancel,
    Change,
    Claimant,
    Lease,
    StoredCall,
    StoredEvent,
    StoredRun,
    Written,
)
from recto.store.postgres import PostgresSettings
from recto.store.profiled import ProfiledStore
from recto.store.sqlite import SqliteSettings
from recto.store.threads import RunList, Stopped, StoredThread, ThreadList, ThreadsWish

# The most that is read at once of a run's events, but for the last of them.
EVENTS_BYTES = 2**20


async def open_store(
    url: str, *, sqlite: SqliteSettings | None = None, postgres: PostgresSettings | None = None
) -> Store:
    """Open a database and bring it to this version's tables."""
    return Store(await open_database(check_url(url), sqlite=sqlite, postgres=postgres))


class Store(FiledStore, ProfiledStore):
    """Log, runs, events and calls, attachments and datasets, profiles, in a database."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._chorus = Chorus(database)
        self._places = cleaning.Places()
        self._reading = asyncio.Lock()

    @property
    def problem(self) -> str | None:
        """Why writes fail at present; None while they succeed."""
        return self._database.problem

    @property
    def is_shared(self) -> bool:
        """Whether several servers may use this database at once."""
        return self._database.is_shared

    async def probe(self) -> None:
        """Write and read, as everything else does. Raises what stands in the way."""
        await self._database.write(_touch)
        await self._database.read(reads.count_waiting)

    async def close(self) -> None:
        """Finish what waits, then close."""
        await self._chorus.close()
        await self._database.close()

    # Runs

    async def admit(self, admission: Admission, who: Claimant | None = None) -> Admitted:
        """Store a run with its input, and claim it for `who` if its thread is free.

        The same request again finds the same run; another under its name: Conflict.
        """
        return await self._database.write(partial(runs.admit, admission=admission, who=who))

    async def find_run(self, owner: str, id: str) -> StoredRun:
        """A run by the server's id or by the client's name for it. Somebody else's: NotFound."""
        return await self._database.read(partial(runs.find, owner=owner, id=id))

    async def opening_input(self, thread: str, response_id: str) -> bytes | None:
        """The request that opened a turn; None where its run is not there."""
        return await self._database.read(partial(runs.opening_input, thread=thread, response_id=response_id))

    async def again(self, owner: str, name: str, digest: bytes) -> Admitted | None:
        """The run a request made before; another request under its name: Conflict. None: it has to be admitted."""
        return await self._database.read(partial(runs.again, owner=owner, name=name, digest=digest))

    async def cancel(self, run: StoredRun, wish: Cancel) -> StoredRun:
        """Write down that a run is to end."""
        return await self._database.write(partial(runs.cancel, run=run, wish=wish))

    async def claim(self, who: Claimant, now: datetime, limit: int) -> Sequence[StoredRun]:
        """Take up to `limit` runs that nobody works on."""
        return await self._database.write(partial(runs.claim, who=who, now=now, limit=limit))

    async def renew(self, who: Claimant, leases: Sequence[Lease], now: datetime) -> Sequence[Lease]:
        """Hold these leases longer. Returns those still held."""
        return await self._database.write_first(partial(runs.renew, who=who, leases=leases, now=now))

    async def hand_back(self, leases: Sequence[Lease], at: datetime) -> None:
        """Give these runs up, for anybody to go on with from that time on."""
        await self._database.write_first(partial(runs.hand_back, leases=leases, at=at))

    async def recover(self, who: Claimant, now: datetime) -> int:
        """Free what an earlier boot of this node left claimed."""
        return await self._database.write(partial(runs.recover, who=who, now=now))

    async def cancels(self, held: Sequence[str]) -> Sequence[str]:
        """Of these runs, those that are to end."""
        return await self._database.write_first(partial(runs.cancels, runs=held))

    async def record(self, lease: Lease, change: Change, now: datetime) -> Written:
        """Write a change under its fence. Another worker has the run: LeaseLost, and nothing is written."""
        return await self._database.write(partial(progress.record, lease=lease, change=change, now=now))

    async def say(self, lease: Lease, events: Sequence[bytes]) -> Written:
        """Add events and nothing else, together with those of other runs. Under the fence, as `record` is."""
        return await self._chorus.say(lease, events)

    # What was written

    async def log_after(self, thread: str, seq: int = 0) -> Sequence[Entry]:
        """The entries of a log behind a number, in order."""
        return await self._database.read(partial(reads.log_after, thread=thread, seq=seq))

    async def events(self, run: str, after: int, limit: int, size: int = EVENTS_BYTES) -> Sequence[StoredEvent]:
        """Events of a run behind a number, in order; no more once they have `size` bytes."""
        return await self._database.read(partial(reads.events_after, run=run, number=after, limit=limit, size=size))

    async def calls(self, run: str) -> Sequence[StoredCall]:
        """The model calls of a run, in order, each as it was sent."""
        return await self._database.read(partial(calls.calls_of, run=run))

    async def call_summaries(self, run: str) -> Sequence[calls.CallSummary]:
        """The model calls of a run, in order, without their pages."""
        return await self._database.read(partial(calls.summaries_of, run=run))

    async def look_at_call(self, run: str, number: int) -> calls.CallSeen:
        """One model call with its page, checked against what was sent. Damage is told, not raised."""
        return await self._database.read(partial(calls.look_at, run=run, number=number))

    async def knows(self, run: str) -> bool:
        """Whether there is such a run; one that was deleted is none."""
        return await self._database.read(partial(reads.knows, run=run))

    async def has_events(self, run: str) -> bool:
        """Whether the events of a run are still there."""
        return await self._database.read(partial(reads.has_events, run=run))

    async def log_of_run(self, run: StoredRun) -> Sequence[Entry]:
        """The log of a run's thread as the run left it."""
        return await self._database.read(partial(reads.log_of_run, run=run))

    async def history(self, owner: str, wish: history.HistoryWish) -> history.HistoryDay:
        """The newest day of a thread that has something to show (P13)."""
        thread, waiting = await self._database.read(partial(history.waiting_for, owner=owner, wish=wish))
        if thread is None:
            return history.HistoryDay()
        sent = await self._sent(waiting)
        return await self._database.read(partial(history.history_day, thread=thread, wish=wish, sent=sent))

    async def queued(self, thread: str, most_bytes: int = queued.QUEUED_BYTES) -> Sequence[queued.Queued]:
        """The user messages of a thread that wait for their turn, as far as their requests have so many bytes."""
        waiting = await self._database.read(partial(queued.waiting_in, thread=thread, most_bytes=most_bytes))
        sent = await self._sent(waiting)
        return await self._database.read(partial(queued.queued_in, thread=thread, sent=sent)) if sent else ()

    async def _sent(self, waiting: Sequence[StoredRun]) -> Sequence[queued.Sent]:
        """What runs were sent with. Read one by one, off the event loop: everybody else has their turn in between."""
        if not waiting:
            return ()
        async with self._reading:
            return await asyncio.to_thread(queued.read_sent, waiting)

    # Threads

    async def list_threads(self, owner: str, wish: ThreadsWish) -> ThreadList:
        """Threads of an owner, newest activity first. A cursor that is none: WireError."""
        return await self._database.read(partial(threads.list_threads, owner=owner, wish=wish))

    async def get_thread(self, owner: str, id: str) -> StoredThread:
        """A thread. Somebody else's: NotFound, as everywhere below."""
        return await self._database.read(partial(threads.get_thread, owner=owner, id=id))

    async def known_threads(self, ids: Sequence[str]) -> frozenset[str]:
        """Those of these threads that are there."""
        return await self._database.read(partial(threads.known, ids=ids))

    async def thread_agent(self, owner: str, id: str) -> str | None:
        """The agent of a thread (C4); None where there is no such thread of this owner."""
        return await self._database.read(partial(threads.agent_of, owner=owner, id=id))

    async def turn(self, thread: str) -> Sequence[Entry]:
        """What is in view of a thread's current turn."""
        return await self._database.read(partial(seen.turn_of, thread=thread))

    async def runs_of_thread(self, owner: str, id: str, cursor: str | None, limit: int) -> RunList:
        """Runs of a thread, newest first (P8)."""
        found = partial(threads.runs_of_thread, owner=owner, id=id, cursor=cursor, limit=limit)
        return await self._database.read(found)

    async def rename(self, owner: str, id: str, title: str) -> StoredThread:
        """Give a thread a title that nobody but its user changes again."""
        return await self._database.write(partial(threads.rename, owner=owner, id=id, title=title))

    async def set_title_if_automatic(self, thread: str, title: str) -> bool:
        """Give a thread a better title, unless its user gave it one."""
        return await self._database.write(partial(threads.set_title_if_automatic, id=thread, title=title))

    async def delete_thread(self, owner: str, id: str) -> Sequence[Stopped]:
        """Delete a thread with all there is of it. Whoever still writes for its runs gets LeaseLost."""
        return await deleting.delete_thread(self._database, owner, id)

    async def fork(self, owner: str, wish: forks.ForkWish) -> StoredThread:
        """Make a thread of what is seen of another."""
        return await self._database.write(partial(forks.fork, owner=owner, wish=wish))

    # Users, and what is no longer wanted

    async def spent(self, owner: str, day: date) -> spending.Spent:
        """What a user's calls took on a day, in UTC."""
        return await self._database.read(partial(spending.spent, owner=owner, day=day))

    def export_user(self, owner: str) -> AsyncGenerator[bytes]:
        """All there is of a user, as JSON lines."""
        return export.export_user(self._database, owner)

    async def delete_user(self, owner: str, *, today: date | None = None) -> export.UserDeleted:
        """Delete all there is of a user, but what they spent `today`: else a deletion would lift the day's limit."""
        return await export.delete_user(self._database, owner, today)

    async def clean(self, retention: cleaning.Retention) -> cleaning.Cleaned:
        """Delete some of what is older than it is to be kept; again, until nothing is left to clean."""
        return await cleaning.clean(self._database, retention, self._places)


def _touch(connection: Connection) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = version_num"))
