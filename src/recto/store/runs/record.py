"""SQL of a run's progress: all a worker writes, under its fence, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import TypeAlias, cast

from sqlalchemy import Connection, bindparam, func, null, update

from recto.conversation.attachment import files_in
from recto.conversation.json import scrub
from recto.conversation.log import TURNS_BACK, Entry, SkillChanged, messages_of
from recto.conversation.messages import Data, File, Text, UserMessage, texts_of
from recto.conversation.title import title_from
from recto.errors import LeaseLost
from recto.page.body import Segment
from recto.store.log.entries import encode_entry, kind_of_entry
from recto.store.log.visible import skill_in
from recto.store.ports import CallBegun, CallEnded, Lease, Recorded, RunChange
from recto.store.runs.calls import pack
from recto.store.runs.daily_savings import save
from recto.store.runs.run_queue import ADD_EVENT, HELD, mine
from recto.store.runs.spending import spend
from recto.store.schema import CALLS, LOG, RUNS, SEGMENTS, THREADS, micros
from recto.store.statement import Statement, StatementValues, Value, insert_into, insert_missing, param

# Events of one run, under its lease.
RunEvents: TypeAlias = tuple[Lease, Sequence[bytes]]
# What a row of the run takes over from a change as it is; None leaves it.
FIELDS = ("entered", "failures", "too_long", "can_compact", "usage", "error", "calls")
CALL = ("number", "purpose", "model", "digest", "shared", "hashes")
NO_SKILL: Mapping[str, Value] = {"new_skill": None, "new_scenario": None}
CALL_ENDED = ("ended", "first_token", "finish", "usage", "price", "error")

_counted = HELD.values(last_event=RUNS.c.last_event + param("more", RUNS.c.last_event))
_kept = {name: func.coalesce(param(f"new_{name}", RUNS.c[name]), RUNS.c[name]) for name in FIELDS}
_returned = (RUNS.c.last_event, RUNS.c.cancel)
# Deltas are most of what is written, and change nothing else.
PASS_WITH_EVENTS = Statement(_counted.returning(*_returned))
PASS = Statement(_counted.values(_kept).returning(*_returned))
END = Statement(
    _counted.values({name: value for name, value in _kept.items() if name != "error"})
    .values(
        status="ended",
        outcome=param("how", RUNS.c.outcome),
        error=param("new_error", RUNS.c.error),
        ended=param("now", RUNS.c.ended),
        lease_until=null(),
        node=null(),
        boot=null(),
    )
    .returning(*_returned)
)
_grown = update(THREADS).where(THREADS.c.id == bindparam("this"))
_grown = _grown.values(
    last_seq=THREADS.c.last_seq + param("more", THREADS.c.last_seq), updated=param("now", THREADS.c.updated)
)
GROW = Statement(_grown.returning(THREADS.c.last_seq))
# The first words said are its title, until somebody gives it a better one.
_titled = _grown.values(title=func.coalesce(THREADS.c.title, param("first_words", THREADS.c.title)))
GROW_WITH_TITLE = Statement(_titled.returning(THREADS.c.last_seq))
SET_SKILL = Statement(
    update(THREADS)
    .where(THREADS.c.id == bindparam("this"))
    .values(skill=param("new_skill", THREADS.c.skill), scenario=param("new_scenario", THREADS.c.scenario))
)
ADD_ENTRY = insert_into(LOG, ("thread", "seq", "id", "kind", "run", "time", "body", "tokens", "counter"))
ADD_SEGMENT = insert_missing(SEGMENTS, ("thread", "hash", "data"))
ADD_CALL = insert_into(CALLS, ("run", *CALL, "manifest", "started"))
END_CALL = Statement(
    update(CALLS)
    .where(CALLS.c.run == bindparam("this"), CALLS.c.number == bindparam("call"))
    .values({name: param(f"new_{name}", CALLS.c[name]) for name in CALL_ENDED})
)


def record(connection: Connection, lease: Lease, change: RunChange, now: datetime) -> Recorded:
    """Write a change under its fence, or raise LeaseLost and write nothing."""
    last_event, cancel = _pass_fence(connection, lease, change, now)
    ADD_EVENT.many(connection, _event_rows(lease, change.events, last_event))
    last_seq = append(connection, lease.thread, change, now, run=lease.run) if change.entries else 0
    if change.call:
        begin_call(connection, lease.run, lease.thread, change.call)
    if change.call_ended:
        end_call(connection, lease.run, change.call_ended)
    return Recorded(last_event=last_event, last_seq=last_seq, cancel=cancel)


def size_of(change: RunChange) -> int:
    """About how many bytes a change writes."""
    messages = messages_of(change.entries)
    words = sum([len(text) for message in messages for text in texts_of(message)])
    files = sum([len(file.source.base64) for _, file in files_in(messages) if isinstance(file.source, Data)])
    call = change.call
    page = len(call.manifest) + sum([len(segment.data) for segment in call.segments]) if call else 0
    return words + files + page + sum(map(len, change.events))


def add_events(connection: Connection, batch: Sequence[RunEvents]) -> list[Recorded | LeaseLost]:
    """Add events of many runs at once, each under its own fence. One whose fence is broken spoils no other."""
    outcomes: dict[int, Recorded | LeaseLost] = {}
    rows: list[StatementValues] = []
    # Always in the same order, so that two processes that touch the same rows cannot wait for each other.
    for place, (lease, events) in sorted(enumerate(batch), key=lambda one: one[1][0].run):
        try:
            last_event, cancel = _fenced(lease, PASS_WITH_EVENTS.rows(connection, _counted_for(lease, len(events))))
        except LeaseLost as error:
            outcomes[place] = error
            continue
        rows += _event_rows(lease, events, last_event)
        outcomes[place] = Recorded(last_event=last_event, last_seq=0, cancel=cancel)
    ADD_EVENT.many(connection, rows)
    return [outcomes[place] for place in range(len(batch))]


def _event_rows(lease: Lease, events: Sequence[bytes], last: int) -> list[StatementValues]:
    first = last - len(events) + 1
    return [{"run": lease.run, "number": first + place, "body": body} for place, body in enumerate(events)]


def _pass_fence(connection: Connection, lease: Lease, change: RunChange, now: datetime) -> tuple[int, str | None]:
    values = _counted_for(lease, len(change.events))
    fields: dict[str, Value] = {f"new_{name}": getattr(change, name, None) for name in FIELDS}
    fields["new_error"] = storable(change.error)
    fields["new_calls"] = change.call.number if change.call else None
    if change.ending:
        ending = {"how": change.ending.outcome, "new_error": storable(change.ending.error), "now": micros(now)}
        rows = END.rows(connection, {**values, **fields, **ending})
    elif any(value is not None for value in fields.values()):
        rows = PASS.rows(connection, {**values, **fields})
    else:
        rows = PASS_WITH_EVENTS.rows(connection, values)
    return _fenced(lease, rows)


def storable(text: str | None) -> str | None:
    """What others said of a fault, as a database takes it: PostgreSQL has no U+0000 in text, UTF-8 no half pairs."""
    return scrub(text).replace("\0", "\ufffd") if text else text


def _counted_for(lease: Lease, events: int) -> dict[str, Value]:
    return {**mine(lease), "more": events}


def _fenced(lease: Lease, rows: Sequence[Sequence[object]]) -> tuple[int, str | None]:
    """What the row says, if it is still ours."""
    if not rows:
        raise LeaseLost(run=lease.run, fence=lease.fence)
    return cast("tuple[int, str | None]", tuple(rows[0]))


def append(connection: Connection, thread: str, change: RunChange, now: datetime, *, run: str | None = None) -> int:
    """Add entries to a log, in order; `run` wrote them, else its user did. Returns the number of the last."""
    entries, counts = change.entries, change.counts
    grown = _grow(connection, entries, {"this": thread, "more": len(entries), "now": micros(now)})
    last = grown[0][0] if grown and isinstance(grown[0][0], int) else 0
    first = last - len(entries) + 1
    rows = [
        {
            "thread": thread,
            "seq": first + place,
            "id": entry.id,
            "kind": kind_of_entry(entry),
            "run": run,
            "time": micros(entry.time or now),
            "body": encode_entry(entry),
            "tokens": tokens,
            "counter": None if tokens is None else counts.counter,
        }
        for place, (entry, tokens) in enumerate(zip_longest(entries, counts.tokens))
    ]
    ADD_ENTRY.many(connection, rows)
    _set_skill(connection, thread, entries)
    return last


def _set_skill(connection: Connection, thread: str, entries: Sequence[Entry]) -> None:
    """The thread's skill is that of its newest change in view (S4). Turning back may bring an older one into view."""
    kinds = {type(entry) for entry in entries}
    if kinds.isdisjoint({SkillChanged, *TURNS_BACK}):
        return
    newest = next((entry for entry in reversed(entries) if isinstance(entry, SkillChanged)), None)
    skill = newest if kinds.isdisjoint(TURNS_BACK) else skill_in(connection, thread)
    row = {"new_skill": skill.skill, "new_scenario": skill.scenario} if skill else NO_SKILL
    SET_SKILL.count(connection, {"this": thread, **row})


def _grow(connection: Connection, entries: Sequence[Entry], values: StatementValues) -> Sequence[Sequence[object]]:
    said = next((entry for entry in entries if isinstance(entry, UserMessage)), None)
    if said is None:
        return GROW.rows(connection, values)
    words = title_from(" ".join([part.text for part in said.parts if isinstance(part, Text)]))
    if words is None:
        # Who sends a file without a word finds the thread by the file's name.
        words = title_from(next((part.name for part in said.parts if isinstance(part, File) and part.name), ""))
    return GROW_WITH_TITLE.rows(connection, {**values, "first_words": words})


def begin_call(connection: Connection, run: str, thread: str, call: CallBegun) -> None:
    """Write down a call that is about to be made."""
    _store_segments(connection, thread, call.segments)
    values: StatementValues = {
        **{name: getattr(call, name) for name in CALL},
        "run": run,
        "manifest": pack(call.manifest),
        "started": micros(call.started),
    }
    ADD_CALL.many(connection, [values])


def _store_segments(connection: Connection, thread: str, segments: Sequence[Segment]) -> None:
    new = {segment.sha256: segment.data for segment in segments}
    rows = [{"thread": thread, "hash": hash, "data": pack(data)} for hash, data in new.items()]
    ADD_SEGMENT.many(connection, rows)


def end_call(connection: Connection, run: str, call: CallEnded) -> None:
    """Write down how a call went, and what its user spent."""
    values: StatementValues = {
        "new_ended": micros(call.ended),
        "new_first_token": micros(call.first_token) if call.first_token else None,
        "new_finish": call.finish,
        "new_usage": call.usage,
        "new_price": call.price,
        "new_error": storable(call.error),
    }
    END_CALL.count(connection, {**values, "this": run, "call": call.number})
    if call.usage:
        spend(connection, run, call)
        save(connection, run, call)
