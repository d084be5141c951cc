"""Progress of runs: all writes of a worker, under its fence, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import zip_longest
from typing import TypeAlias, cast

from sqlalchemy import Connection, bindparam, func, null, update

from recto.conversation.json import scrub
from recto.conversation.log import ROLLBACK_MARKERS, Entry, SkillChanged, messages_of
from recto.conversation.message_files import files_in
from recto.conversation.messages import Data, File, Text, UserMessage, texts_of
from recto.conversation.title import title_from
from recto.errors import LeaseLost
from recto.store.log.entry_codec import encode_entry, entry_kind
from recto.store.log.entry_rows import find_skill
from recto.store.ports import CallEnd, CallStart, Lease, RecordResult, RunChange
from recto.store.runs.calls import pack
from recto.store.runs.run_rows import ADD_EVENT, UPDATE_HELD, lease_values
from recto.store.runs.spending import add_savings, add_spending
from recto.store.schema import CALLS, LOG, RUNS, SEGMENTS, THREADS, to_micros
from recto.store.statement import Statement, StatementValues, Value, insert_into, insert_missing, param

# Events of one run, with the lease under which they are written.
RunEvents: TypeAlias = tuple[Lease, Sequence[bytes]]
# Fields that a change sets in the run's row. None leaves a field unchanged.
FIELDS = ("entered", "failures", "too_long", "can_compact", "usage", "error", "calls")
CALL_COLUMNS = ("number", "purpose", "model", "digest", "shared", "hashes")
CALL_END_COLUMNS = ("ended", "first_token", "finish", "usage", "price", "error")

_with_events = UPDATE_HELD.values(last_event=RUNS.c.last_event + param("more", RUNS.c.last_event))
_fields = {name: func.coalesce(param(f"new_{name}", RUNS.c[name]), RUNS.c[name]) for name in FIELDS}
_returned = (RUNS.c.last_event, RUNS.c.cancel)
# Statement for deltas, which are most of the writes and change no other field.
COUNT_EVENTS = Statement(_with_events.returning(*_returned))
UPDATE = Statement(_with_events.values(_fields).returning(*_returned))
END = Statement(
    _with_events.values({name: value for name, value in _fields.items() if name != "error"})
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
_growth = update(THREADS).where(THREADS.c.id == bindparam("this"))
_growth = _growth.values(
    last_seq=THREADS.c.last_seq + param("more", THREADS.c.last_seq), updated=param("now", THREADS.c.updated)
)
GROW = Statement(_growth.returning(THREADS.c.last_seq))
# The first user message is the title until the user or a model sets one.
_with_title = _growth.values(title=func.coalesce(THREADS.c.title, param("first_words", THREADS.c.title)))
GROW_WITH_TITLE = Statement(_with_title.returning(THREADS.c.last_seq))
SET_SKILL = Statement(
    update(THREADS)
    .where(THREADS.c.id == bindparam("this"))
    .values(skill=param("new_skill", THREADS.c.skill), scenario=param("new_scenario", THREADS.c.scenario))
)
ADD_ENTRY = insert_into(LOG, ("thread", "seq", "id", "kind", "run", "time", "body", "tokens", "counter"))
ADD_SEGMENT = insert_missing(SEGMENTS, ("thread", "hash", "data"))
ADD_CALL = insert_into(CALLS, ("run", *CALL_COLUMNS, "manifest", "started"))
END_CALL = Statement(
    update(CALLS)
    .where(CALLS.c.run == bindparam("this"), CALLS.c.number == bindparam("call"))
    .values({name: param(f"new_{name}", CALLS.c[name]) for name in CALL_END_COLUMNS})
)


def record(connection: Connection, lease: Lease, change: RunChange, now: datetime) -> RecordResult:
    """Write a change under its lease. Raise LeaseLost and write nothing if another worker has the run."""
    last_event, cancel = _update_run(connection, lease, change, now)
    ADD_EVENT.run_many(connection, _make_event_rows(lease, change.events, last_event))
    last_seq = append_entries(connection, lease.thread, change, now, run=lease.run) if change.entries else 0
    if change.call_start:
        begin_call(connection, lease.run, lease.thread, change.call_start)
    if change.call_end:
        end_call(connection, lease.run, change.call_end)
    return RecordResult(last_event=last_event, last_seq=last_seq, cancel=cancel)


def measure_change(change: RunChange) -> int:
    """Return the approximate number of bytes of a change."""
    messages = messages_of(change.entries)
    words = sum([len(text) for message in messages for text in texts_of(message)])
    files = sum([len(file.source.base64) for _, file in files_in(messages) if isinstance(file.source, Data)])
    call = change.call_start
    page = len(call.manifest) + sum([len(segment.data) for segment in call.segments]) if call else 0
    return words + files + page + sum(map(len, change.events))


def add_events(connection: Connection, batch: Sequence[RunEvents]) -> list[RecordResult | LeaseLost]:
    """Add events of many runs, each under its own lease. A lost lease does not affect the other runs."""
    outcomes: dict[int, RecordResult | LeaseLost] = {}
    rows: list[StatementValues] = []
    # Sorted, so that two processes that update the same rows cannot deadlock.
    for place, (lease, events) in sorted(enumerate(batch), key=lambda item: item[1][0].run):
        values = {**lease_values(lease), "more": len(events)}
        try:
            last_event, cancel = _check_lease(lease, COUNT_EVENTS.rows(connection, values))
        except LeaseLost as error:
            outcomes[place] = error
            continue
        rows += _make_event_rows(lease, events, last_event)
        outcomes[place] = RecordResult(last_event=last_event, last_seq=0, cancel=cancel)
    ADD_EVENT.run_many(connection, rows)
    return [outcomes[place] for place in range(len(batch))]


def _make_event_rows(lease: Lease, events: Sequence[bytes], last: int) -> list[StatementValues]:
    return [
        {"run": lease.run, "number": n, "body": body} for n, body in enumerate(events, start=last - len(events) + 1)
    ]


def _update_run(connection: Connection, lease: Lease, change: RunChange, now: datetime) -> tuple[int, str | None]:
    values: dict[str, Value] = {**lease_values(lease), "more": len(change.events)}
    fields: dict[str, Value] = {f"new_{name}": getattr(change, name, None) for name in FIELDS}
    fields["new_error"] = clean_text(change.error)
    fields["new_calls"] = change.call_start.number if change.call_start else None
    if change.ending:
        ending = {"how": change.ending.outcome, "new_error": clean_text(change.ending.error), "now": to_micros(now)}
        rows = END.rows(connection, {**values, **fields, **ending})
    elif any(value is not None for value in fields.values()):
        rows = UPDATE.rows(connection, {**values, **fields})
    else:
        rows = COUNT_EVENTS.rows(connection, values)
    return _check_lease(lease, rows)


def _check_lease(lease: Lease, rows: Sequence[Sequence[object]]) -> tuple[int, str | None]:
    """Return the last event and the cancel reason of the updated row. Raise LeaseLost if no row was updated."""
    if not rows:
        raise LeaseLost(run=lease.run, fence=lease.fence)
    return cast("tuple[int, str | None]", tuple(rows[0]))


def clean_text(text: str | None) -> str | None:
    """Return an error text that databases accept: PostgreSQL rejects U+0000, UTF-8 rejects lone surrogates."""
    return scrub(text).replace("\0", "\ufffd") if text else text


def append_entries(
    connection: Connection, thread: str, change: RunChange, now: datetime, *, run: str | None = None
) -> int:
    """Append entries to a log. `run` is the run that wrote them; None means the user.

    Return the number of the last entry.
    """
    entries, counts = change.entries, change.counts
    growth: StatementValues = {"this": thread, "more": len(entries), "now": to_micros(now)}
    message = next((entry for entry in entries if isinstance(entry, UserMessage)), None)
    if message:
        updated = GROW_WITH_TITLE.rows(connection, {**growth, "first_words": _make_title(message)})
    else:
        updated = GROW.rows(connection, growth)
    last = updated[0][0] if updated and isinstance(updated[0][0], int) else 0
    rows = [
        {
            "thread": thread,
            "seq": seq,
            "id": entry.id,
            "kind": entry_kind(entry),
            "run": run,
            "time": to_micros(entry.time or now),
            "body": encode_entry(entry),
            "tokens": tokens,
            "counter": None if tokens is None else counts.counter,
        }
        for seq, (entry, tokens) in enumerate(zip_longest(entries, counts.tokens), start=last - len(entries) + 1)
    ]
    ADD_ENTRY.run_many(connection, rows)
    _set_skill(connection, thread, entries)
    return last


def _make_title(message: UserMessage) -> str | None:
    words = title_from(" ".join([part.text for part in message.parts if isinstance(part, Text)]))
    if words is not None:
        return words
    # Use the file's name, so that the user can find a thread that began with a file only.
    return title_from(next((part.name for part in message.parts if isinstance(part, File) and part.name), ""))


def _set_skill(connection: Connection, thread: str, entries: Sequence[Entry]) -> None:
    """Set the thread's skill to its newest visible skill change (S4).

    A rollback or an undo may reveal an older change.
    """
    kinds = {type(entry) for entry in entries}
    if kinds.isdisjoint({SkillChanged, *ROLLBACK_MARKERS}):
        return
    newest = next((entry for entry in reversed(entries) if isinstance(entry, SkillChanged)), None)
    change = newest if kinds.isdisjoint(ROLLBACK_MARKERS) else find_skill(connection, thread)
    skill, scenario = (change.skill, change.scenario) if change else (None, None)
    SET_SKILL.count(connection, {"this": thread, "new_skill": skill, "new_scenario": scenario})


def begin_call(connection: Connection, run: str, thread: str, call: CallStart) -> None:
    """Store a call that is about to be made."""
    segments = {segment.sha256: segment.data for segment in call.segments}
    rows = [{"thread": thread, "hash": hash, "data": pack(data)} for hash, data in segments.items()]
    ADD_SEGMENT.run_many(connection, rows)
    values: StatementValues = {
        **{name: getattr(call, name) for name in CALL_COLUMNS},
        "run": run,
        "manifest": pack(call.manifest),
        "started": to_micros(call.started),
    }
    ADD_CALL.run_many(connection, [values])


def end_call(connection: Connection, run: str, call: CallEnd) -> None:
    """Store the result of a call and add its usage and savings to the user's day."""
    values: StatementValues = {
        "new_ended": to_micros(call.ended),
        "new_first_token": to_micros(call.first_token) if call.first_token else None,
        "new_finish": call.finish,
        "new_usage": call.usage,
        "new_price": call.price,
        "new_error": clean_text(call.error),
    }
    END_CALL.count(connection, {**values, "this": run, "call": call.number})
    if call.usage:
        add_spending(connection, run, call)
        add_savings(connection, run, call)
