"""SQL of answers to interrupts, checked in the transaction that admits their run."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection, bindparam, select, text

from recto.conversation.input.input_entries import check_resume
from recto.conversation.input.run_input import ResumeItem, stored_input
from recto.conversation.log import View
from recto.errors import Conflict, WireError
from recto.store.log.entry_rows import read_turn
from recto.store.ports import Admission
from recto.store.schema import IS_OPEN, RUNS
from recto.store.statement import Statement

BUSY = (
    "Another run of this thread is at work or waits, so its interrupts are not yours to answer now. Wait for its end."
)

OPEN_INPUTS = Statement(select(RUNS.c.id, RUNS.c.input).where(RUNS.c.thread == bindparam("of"), text(IS_OPEN)))


def taken_by(connection: Connection, admission: Admission) -> str | None:
    """Return the run that already brought the same answers, or None if this run may bring them.

    Raise Conflict for answers to nothing pending. An open run may have answered, or may still ask: while there is one,
    accept only a repetition of its answers.
    """
    asked = admission.parsed
    if asked is None or not asked.resume:
        return None
    others = cast("list[tuple[str, bytes]]", OPEN_INPUTS.rows(connection, {"of": admission.thread}))
    same = next((id for id, body in others if _is_same(body, asked.resume)), None)
    if others and same is None:
        raise Conflict(BUSY)
    if same:
        return same
    seen = View(entries=read_turn(connection, admission.thread))
    return check_resume(seen, asked.resume, admission.created, has_messages=bool(asked.messages))


def _is_same(body: bytes, items: tuple[ResumeItem, ...]) -> bool:
    try:
        return set(stored_input(body).resume) == set(items)
    except (WireError, ValueError):
        # The run itself reports this.
        return False
