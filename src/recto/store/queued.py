"""SQL of what waits: user messages of runs that have not begun, as they will stand in the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, false, select

from recto.errors import WireError
from recto.page import UserMessage, View
from recto.page.attachment import from_stored
from recto.page.canonical import load
from recto.page.enter import Entering, queued_turn
from recto.page.messages import Message
from recto.page.wire.agui_input import decode_input
from recto.store.ports import StoredRun
from recto.store.runs import COLUMNS, run_of_row
from recto.store.schema import LOG, RUNS
from recto.store.seen import turn_of
from recto.store.statement import Statement

# Claimed but not entered counts too: its words are not in the log yet.
WAITING = Statement(
    select(*COLUMNS)
    .where(RUNS.c.thread == bindparam("this"), RUNS.c.status != "ended", RUNS.c.entered == false())
    .order_by(RUNS.c.id)
)


@dataclass(frozen=True, kw_only=True)
class Queued:
    """A user message that waits for its turn, and the run that brings it: its task id and the client's name for it."""

    task: str
    run: str
    message: UserMessage


def queued_in(connection: Connection, thread: str) -> tuple[Queued, ...]:
    """The messages that wait, in the order of their runs."""
    runs = [run_of_row(row) for row in WAITING.rows(connection, {"this": thread})]
    if not runs:
        return ()
    sent = [(run, _messages(run)) for run in runs]
    ids = {message.id for _, messages in sent for message in messages}
    query = select(LOG.c.id).where(LOG.c.thread == thread, LOG.c.id.in_(ids))
    taken = set(connection.execute(query).scalars())
    seen, found = View(entries=turn_of(connection, thread)), list[Queued]()
    for run, messages in sent:
        # Its words may take another id than they came under; nothing else of it gets one here.
        entering = Entering(admitted=run.created, response_id=run.response_id, turn_id=run.id, new_id=str)
        message = queued_turn(seen, messages, entering, taken)
        if message:
            taken.add(message.id)
            found.append(Queued(task=run.id, run=run.name, message=replace(message, seq=None)))
    return tuple(found)


def _messages(run: StoredRun) -> Sequence[Message]:
    """What a run was asked. Of what cannot be read there is nothing to show; the run itself will say so."""
    try:
        return from_stored(decode_input(load(run.input)).messages)
    except (WireError, ValueError):
        return ()
