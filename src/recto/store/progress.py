"""SQL of a run's progress: all a worker writes, under its fence, in one transaction."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, Insert, insert, update
from sqlalchemy.dialects import postgresql, sqlite

from recto.errors import LeaseLost
from recto.page import Entry, Segment, SkillChanged
from recto.store.entries import encode_entry, kind_of_entry
from recto.store.ports import CallBegun, CallEnded, Change, Lease, Written
from recto.store.schema import CALLS, EVENTS, LOG, RUNS, SEGMENTS, THREADS

# What a row of the run takes over from a change as it is.
FIELDS = ("entered", "failures", "too_long", "can_compact", "usage", "error")


def record(connection: Connection, lease: Lease, change: Change, now: datetime) -> Written:
    """Write a change under its fence, or raise LeaseLost and write nothing."""
    last_event, cancel = _pass_fence(connection, lease, change, now)
    if change.events:
        first = last_event - len(change.events) + 1
        rows = [{"run": lease.run, "number": first + place, "body": body} for place, body in enumerate(change.events)]
        connection.execute(insert(EVENTS), rows)
    last_seq = append(connection, lease.thread, change.entries, run=lease.run, now=now) if change.entries else 0
    if change.call:
        _begin_call(connection, lease, change.call)
    if change.call_ended:
        _end_call(connection, lease.run, change.call_ended)
    return Written(last_event=last_event, last_seq=last_seq, cancel=cancel)


def _pass_fence(connection: Connection, lease: Lease, change: Change, now: datetime) -> tuple[int, str | None]:
    values: dict[str, object] = {name: value for name in FIELDS if (value := getattr(change, name)) is not None}
    values["last_event"] = RUNS.c.last_event + len(change.events)
    if change.call:
        values["calls"] = change.call.number
    if change.ending:
        values |= {"status": "ended", "outcome": change.ending.outcome, "error": change.ending.error}
        values |= {"ended": now, "lease_until": None, "node": None, "boot": None}
    held = update(RUNS).where(RUNS.c.id == lease.run, RUNS.c.fence == lease.fence, RUNS.c.status == "running")
    row = connection.execute(held.values(values).returning(RUNS.c.last_event, RUNS.c.cancel)).one_or_none()
    if row is None:
        raise LeaseLost(run=lease.run, fence=lease.fence)
    return row[0], row[1]


def append(connection: Connection, thread: str, entries: Sequence[Entry], *, run: str | None, now: datetime) -> int:
    """Add entries to a log, in order. Returns the number of the last."""
    values: dict[str, object] = {"last_seq": THREADS.c.last_seq + len(entries), "updated": now}
    skill = next((entry for entry in reversed(entries) if isinstance(entry, SkillChanged)), None)
    if skill:
        values |= {"skill": skill.skill, "scenario": skill.scenario}
    change = update(THREADS).where(THREADS.c.id == thread).values(values).returning(THREADS.c.last_seq)
    last = connection.execute(change).scalar_one()
    first = last - len(entries) + 1
    rows = [
        {
            "thread": thread,
            "seq": first + place,
            "id": entry.id,
            "kind": kind_of_entry(entry),
            "run": run,
            "time": entry.time or now,
            "body": encode_entry(entry),
        }
        for place, entry in enumerate(entries)
    ]
    connection.execute(insert(LOG), rows)
    return last


def _begin_call(connection: Connection, lease: Lease, call: CallBegun) -> None:
    _store_segments(connection, lease.thread, call.segments)
    values = {
        **{name: getattr(call, name) for name in ("number", "purpose", "model", "digest", "shared", "hashes")},
        "run": lease.run,
        "manifest": zlib.compress(call.manifest, 1),
        "started": call.started,
    }
    connection.execute(insert(CALLS), values)


def _store_segments(connection: Connection, thread: str, segments: Sequence[Segment]) -> None:
    new = {segment.sha256: segment.data for segment in segments}
    rows = [{"thread": thread, "hash": hash, "data": zlib.compress(data, 1)} for hash, data in new.items()]
    if rows:
        connection.execute(_insert_missing(connection), rows)


def _insert_missing(connection: Connection) -> Insert:
    # The one statement the two databases spell alike but SQLAlchemy keeps in two dialects.
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(SEGMENTS).on_conflict_do_nothing()


def _end_call(connection: Connection, run: str, call: CallEnded) -> None:
    values = {name: getattr(call, name) for name in ("ended", "first_token", "finish", "usage", "error")}
    connection.execute(update(CALLS).where(CALLS.c.run == run, CALLS.c.number == call.number).values(values))
