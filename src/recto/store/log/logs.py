"""Logs of threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from recto.conversation.log import Entry, StateChanged
from recto.store.database.database import Database
from recto.store.log import read_end, read_log, visible
from recto.store.ports import (
    StoredRun,
)


class Logs:
    """Logs of threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_after(self, thread: str, seq: int = 0) -> Sequence[Entry]:
        """The entries of a log behind a number, in order."""
        return await self._database.read(partial(read_log.log_after, thread=thread, seq=seq))

    async def read_up_to(self, thread: str, seq: int) -> Sequence[Entry]:
        """The entries of a log up to a number, in order."""
        return await self._database.read(partial(read_log.log_up_to, thread=thread, seq=seq))

    async def read_up_to_entry(self, thread: str, id: str) -> Sequence[Entry]:
        """The entries of a log up to the one of this id, in order; none where it is not there."""
        return await self._database.read(partial(read_log.log_up_to_entry, thread=thread, id=id))

    async def read_of_run(self, run: StoredRun) -> Sequence[Entry]:
        """The log of a run's thread as the run left it."""
        return await self._database.read(partial(read_log.log_of_run, run=run))

    async def read_end(self, query: read_end.EndQuery) -> read_end.LogEnd | read_end.MissingCounts | None:
        """Of a long log what its pages can show; None where it has to be read whole."""
        return await self._database.read(partial(read_end.read_end, query=query))

    async def list_uncounted(self, thread: str, counter: str, *, after: int, upto: int) -> Sequence[Entry]:
        """Some messages between two numbers that this counter has not counted, oldest first."""
        found = partial(read_end.uncounted, thread=thread, counter=counter, after=after, upto=upto)
        return await self._database.read(found)

    async def set_tokens(self, thread: str, counter: str, tokens: Mapping[str, int]) -> None:
        """Keep what entries count, by their ids."""
        await self._database.write(partial(read_end.set_tokens, thread=thread, counter=counter, tokens=tokens))

    async def find_ids(self, thread: str, ids: Sequence[str]) -> frozenset[str]:
        """Those of these ids that entries of a log go by."""
        return await self._database.read(partial(read_log.taken_ids, thread=thread, ids=ids))

    async def has_call(self, thread: str, upto: int, call: str) -> bool:
        """Whether a reply up to a number has a call of this id."""
        return await self._database.read(partial(read_log.has_had_call, thread=thread, upto=upto, call=call))

    async def read_turn(self, thread: str) -> Sequence[Entry]:
        """What is in view of a thread's current turn."""
        return await self._database.read(partial(visible.turn_of, thread=thread))

    async def read_state(self, thread: str) -> StateChanged | None:
        """The state that a thread shares with its clients, as it was changed last."""
        return await self._database.read(partial(visible.state_in, thread=thread))

    async def can_undo(self, thread: str) -> bool:
        """Whether a thread has a rollback to take back."""
        return (await self._database.read(partial(visible.seen_in, thread=thread))).can_undo
