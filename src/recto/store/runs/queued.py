"""SQL of queued user messages: those of runs that have not started, as they will enter the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias, cast

from sqlalchemy import Connection, and_, bindparam, false, func, select

from recto.conversation.input.input_entries import AdmittedRun, queued_turn
from recto.conversation.input.run_input import stored_input
from recto.conversation.log import View
from recto.conversation.messages import Message, UserMessage
from recto.errors import WireError
from recto.store.log.entry_rows import read_turn
from recto.store.ports import StoredRun
from recto.store.runs.run_queue import COLUMNS, parse_run
from recto.store.schema import LOG, RUNS
from recto.store.statement import Statement

# Includes claimed runs whose input is not in the log yet.
_waits = and_(RUNS.c.thread == bindparam("this"), RUNS.c.status != "ended", RUNS.c.entered == false())
WAITING = Statement(select(RUNS.c.id, func.length(RUNS.c.input), RUNS.c.number).where(_waits).order_by(RUNS.c.number))
ASKED = Statement(select(*COLUMNS).where(_waits, RUNS.c.number <= bindparam("last")).order_by(RUNS.c.number))


@dataclass(frozen=True, kw_only=True)
class QueuedMessage:
    """A queued user message, with the id of its run and the client's name for that run."""

    task: str
    run: str
    message: UserMessage


@dataclass(frozen=True, kw_only=True)
class QueuedRun:
    """A queued run and the messages of its request."""

    run: StoredRun
    messages: Sequence[Message]


Sent: TypeAlias = Mapping[str, QueuedRun]


@dataclass(frozen=True, kw_only=True)
class InputsNeeded:
    """Returned instead of a result: the inputs of these queued runs must be parsed first."""

    runs: tuple[StoredRun, ...]


def read_sent(runs: Sequence[StoredRun]) -> Sent:
    """Parse the requests of runs, by run id. Slow, and needs no database."""
    return {run.id: QueuedRun(run=run, messages=_messages(run)) for run in runs}


def queued_in(
    connection: Connection, thread: str, most_bytes: int, sent: Sent
) -> tuple[QueuedMessage, ...] | InputsNeeded:
    """Return the queued messages in the order of their runs, up to `most_bytes` of requests."""
    sizes = cast("Sequence[tuple[str, int, int]]", WAITING.rows(connection, {"this": thread}))
    sums = accumulate(size for _, size, _ in sizes)
    waiting = [(id, number) for (id, _, number), total in zip(sizes, sums, strict=True) if total <= most_bytes]
    if any(id not in sent for id, _ in waiting):
        rows = ASKED.rows(connection, {"this": thread, "last": waiting[-1][1]})
        return InputsNeeded(runs=tuple([run for run in map(parse_run, rows) if run.id not in sent]))
    return _queued(connection, thread, [sent[id] for id, _ in waiting]) if waiting else ()


def _queued(connection: Connection, thread: str, sent: Sequence[QueuedRun]) -> tuple[QueuedMessage, ...]:
    ids = {message.id for one in sent for message in one.messages}
    query = select(LOG.c.id).where(LOG.c.thread == thread, LOG.c.id.in_(ids))
    taken = set(connection.execute(query).scalars())
    seen, found = View(entries=read_turn(connection, thread)), list[QueuedMessage]()
    for one in sent:
        run = one.run
        # The message may get another id than the client sent; nothing else of the run gets an id here.
        entering = AdmittedRun(admitted_at=run.created, response_id=run.response_id, turn_id=run.id, new_id=str)
        message = queued_turn(seen, one.messages, entering, taken)
        if message:
            taken.add(message.id)
            found.append(QueuedMessage(task=run.id, run=run.name, message=replace(message, seq=None)))
    return tuple(found)


def _messages(run: StoredRun) -> Sequence[Message]:
    """Return the messages of a run's request; none if it is unreadable, which the run itself reports."""
    try:
        return stored_input(run.input).messages
    except (WireError, ValueError):
        return ()
