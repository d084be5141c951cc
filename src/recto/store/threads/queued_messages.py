"""Queued user messages: the messages of runs that have not started, as they will enter the log."""

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
from recto.store.runs.run_rows import COLUMNS, parse_run
from recto.store.schema import LOG, RUNS
from recto.store.statement import Statement

# Condition that includes claimed runs whose input is not in the log yet.
_is_queued = and_(RUNS.c.thread == bindparam("this"), RUNS.c.status != "ended", RUNS.c.entered == false())
SIZES = Statement(select(RUNS.c.id, func.length(RUNS.c.input), RUNS.c.number).where(_is_queued).order_by(RUNS.c.number))
QUEUED_RUNS = Statement(select(*COLUMNS).where(_is_queued, RUNS.c.number <= bindparam("last")).order_by(RUNS.c.number))


@dataclass(frozen=True, kw_only=True)
class QueuedMessage:
    """A queued user message, with the id of its run and the client's name for that run."""

    task: str
    run: str
    message: UserMessage


@dataclass(frozen=True, kw_only=True)
class ParsedRun:
    """A queued run and the messages of its request."""

    run: StoredRun
    messages: Sequence[Message]


ParsedRuns: TypeAlias = Mapping[str, ParsedRun]


@dataclass(frozen=True, kw_only=True)
class InputsNeeded:
    """Result if the inputs of these queued runs must be parsed before the read can be repeated."""

    runs: tuple[StoredRun, ...]


def parse_requests(runs: Sequence[StoredRun]) -> ParsedRuns:
    """Parse the requests of runs, and return them by run id. Parsing is slow and needs no database."""
    return {run.id: ParsedRun(run=run, messages=_parse_messages(run)) for run in runs}


def list_queued(
    connection: Connection, thread: str, most_bytes: int, requests: ParsedRuns
) -> tuple[QueuedMessage, ...] | InputsNeeded:
    """Return the queued messages in the order of their runs, up to `most_bytes` of requests."""
    sizes = cast("Sequence[tuple[str, int, int]]", SIZES.rows(connection, {"this": thread}))
    sums = accumulate(size for _, size, _ in sizes)
    queued = [(id, number) for (id, _, number), total in zip(sizes, sums, strict=True) if total <= most_bytes]
    if any(id not in requests for id, _ in queued):
        rows = QUEUED_RUNS.rows(connection, {"this": thread, "last": queued[-1][1]})
        return InputsNeeded(runs=tuple([run for run in map(parse_run, rows) if run.id not in requests]))
    if not queued:
        return ()
    runs = [requests[id] for id, _ in queued]
    ids = {message.id for run in runs for message in run.messages}
    used_ids = set(connection.execute(select(LOG.c.id).where(LOG.c.thread == thread, LOG.c.id.in_(ids))).scalars())
    view, messages = View(entries=read_turn(connection, thread)), list[QueuedMessage]()
    for run, request in [(item.run, item.messages) for item in runs]:
        # The message may get a different id from the one the client sent. No other id is assigned here.
        context = AdmittedRun(admitted_at=run.created, response_id=run.response_id, turn_id=run.id, new_id=str)
        message = queued_turn(view, request, context, used_ids)
        if message:
            used_ids.add(message.id)
            messages.append(QueuedMessage(task=run.id, run=run.name, message=replace(message, seq=None)))
    return tuple(messages)


def _parse_messages(run: StoredRun) -> Sequence[Message]:
    """Return the messages of a run's request. Return none if the request is unreadable; the run itself reports that."""
    try:
        return stored_input(run.input).messages
    except (WireError, ValueError):
        return ()
