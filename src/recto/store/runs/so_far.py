"""SQL of a run's snapshot for a late subscriber: its row, events and log as of one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from recto.conversation.log import Entry
from recto.store.log.read_log import events_after, log_after, log_of_run
from recto.store.ports import StoredEvent, StoredRun
from recto.store.runs.run_queue import find

# Limits of one query.
EVENTS, BYTES = 1_000, 2**24


@dataclass(frozen=True, kw_only=True)
class RunSoFar:
    """A run with its events and its thread's log: the whole log while the run is open, later the log as the run left
    it.
    """

    run: StoredRun
    events: Sequence[StoredEvent]
    log: Sequence[Entry]

    @property
    def is_over(self) -> bool:
        """True if the run has ended."""
        return self.run.status == "ended"

    @property
    def has_input(self) -> bool:
        """True if the log contains the run's input, or never will."""
        return self.run.entered or self.is_over

    @property
    def last(self) -> int:
        """Number of the event to continue from; 0 before the input is in the log."""
        return self.events[-1].number if self.events and self.has_input else 0


def run_so_far(connection: Connection, run: StoredRun) -> RunSoFar:
    """Return a snapshot of a run: its events and its thread's log. Raise NotFound if it was deleted."""
    now = find(connection, run.owner, run.id)
    log = log_of_run(connection, now) if now.status == "ended" else log_after(connection, now.thread, 0)
    return RunSoFar(run=now, events=_all_events(connection, now.id), log=log)


def _all_events(connection: Connection, run: str) -> Sequence[StoredEvent]:
    events: list[StoredEvent] = []
    while found := events_after(connection, run, events[-1].number if events else 0, EVENTS, BYTES):
        events += found
    return events
