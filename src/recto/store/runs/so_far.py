"""SQL of a run so far: its row, its events and its thread's log as of one moment, for who joins it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from recto.conversation.log import Entry
from recto.store.log.read_log import events_after, log_after, log_of_run
from recto.store.ports import StoredEvent, StoredRun
from recto.store.runs.run_queue import find

# What is read at once.
EVENTS, BYTES = 1_000, 2**24


@dataclass(frozen=True, kw_only=True)
class RunSoFar:
    """A run, what it has said, and its thread's log: while it is at work all of it, later as the run left it."""

    run: StoredRun
    events: Sequence[StoredEvent]
    log: Sequence[Entry]

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.run.status == "ended"

    @property
    def has_input(self) -> bool:
        """Whether what it was asked is in the log; of one that was ended before, it never will be."""
        return self.run.entered or self.is_over

    @property
    def last(self) -> int:
        """The number of the event to go on from; 0 before it can be gone on from."""
        return self.events[-1].number if self.events and self.has_input else 0


def run_so_far(connection: Connection, run: StoredRun) -> RunSoFar:
    """A run as it is now."""
    now = find(connection, run.owner, run.id)
    log = log_of_run(connection, now) if now.status == "ended" else log_after(connection, now.thread, 0)
    return RunSoFar(run=now, events=_all_events(connection, now.id), log=log)


def _all_events(connection: Connection, run: str) -> Sequence[StoredEvent]:
    events: list[StoredEvent] = []
    while found := events_after(connection, run, events[-1].number if events else 0, EVENTS, BYTES):
        events += found
    return events
