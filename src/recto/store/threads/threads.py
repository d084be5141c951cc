"""Threads: listing, changes, deletion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from recto.store.database.database import Database
from recto.store.ports import (
    AdmissionThread,
)
from recto.store.threads import cleaning, deleting, forks, rollbacks, thread_rows
from recto.store.threads.rollbacks import RollbackOptions, RollbackUndone, ThreadRolledBack
from recto.store.threads.thread_rows import StoppedRun, StoredThread, ThreadList, ThreadsQuery


class Threads:
    """Threads: listing, changes, deletion."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._places = cleaning.Places()

    async def list_page(self, owner: str, query: ThreadsQuery) -> ThreadList:
        """Threads of an owner, newest activity first. A cursor that is none: WireError."""
        return await self._database.read(partial(thread_rows.list_threads, owner=owner, query=query))

    async def get(self, owner: str, id: str) -> StoredThread:
        """A thread. Somebody else's: NotFound, as everywhere below."""
        return await self._database.read(partial(thread_rows.get_thread, owner=owner, id=id))

    async def find_existing(self, ids: Sequence[str]) -> frozenset[str]:
        """Those of these threads that are there."""
        return await self._database.read(partial(thread_rows.known, ids=ids))

    async def get_agent(self, owner: str, id: str) -> str | None:
        """The agent of a thread (C4); None where there is no such thread of this owner."""
        return await self._database.read(partial(thread_rows.agent_of, owner=owner, id=id))

    async def get_for_admission(self, owner: str, id: str) -> AdmissionThread | None:
        """Whether a thread is there and whose, its agent and its skill (C4, P5, S4)."""
        return await self._database.read(partial(thread_rows.for_admission, owner=owner, id=id))

    async def rename(self, owner: str, id: str, title: str) -> StoredThread:
        """Give a thread a title that nobody but its user changes again."""
        return await self._database.write(partial(thread_rows.rename, owner=owner, id=id, title=title))

    async def set_agreed_tools(self, owner: str, id: str, tools: Sequence[str]) -> StoredThread:
        """Have these tools, and no others, ask nobody in a thread."""
        return await self._database.write(partial(thread_rows.agree, owner=owner, id=id, tools=tools))

    async def archive(self, owner: str, id: str, *, is_archived: bool) -> StoredThread:
        """Say of a thread whether it is archived."""
        return await self._database.write(partial(thread_rows.archive, owner=owner, id=id, is_archived=is_archived))

    async def set_title_if_automatic(self, thread: str, title: str) -> bool:
        """Give a thread a better title, unless its user gave it one."""
        return await self._database.write(partial(thread_rows.set_title_if_automatic, id=thread, title=title))

    async def delete(self, owner: str, id: str) -> Sequence[StoppedRun]:
        """Delete a thread with all there is of it. Whoever still writes for its runs gets LeaseLost."""
        return await deleting.delete_thread(self._database, owner, id)

    async def fork(self, owner: str, options: forks.ForkOptions) -> StoredThread:
        """Make a thread of what is seen of another."""
        return await self._database.write(partial(forks.fork, owner=owner, options=options))

    async def roll_back(self, owner: str, options: RollbackOptions, *, to: str) -> ThreadRolledBack:
        """Have a user message and all that follows out of view (R12). While a run is at work or waits: Conflict."""
        return await self._database.write(partial(rollbacks.roll_back, owner=owner, options=options, to=to))

    async def undo(self, owner: str, options: RollbackOptions) -> RollbackUndone:
        """Take the last rollback of a thread back. Where there is none, or a run is at work or waits: Conflict."""
        return await self._database.write(partial(rollbacks.undo, owner=owner, options=options))

    async def clean(self, retention: cleaning.Retention) -> cleaning.CleaningCounts:
        """Delete some of what is older than it is to be kept; again, until nothing is left to clean."""
        return await cleaning.clean(self._database, retention, self._places)
