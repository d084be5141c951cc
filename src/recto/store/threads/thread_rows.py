"""Rows of threads. Every query has an owner: for other users a thread does not exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, and_, literal_column, select

from recto.conversation.json import load, parts_of
from recto.errors import NotFound
from recto.store.runs.run_rows import IS_OWN_THREAD
from recto.store.schema import RUNS, THREADS, from_micros
from recto.store.statement import Statement

# Authors of titles.
BY_USER, BY_MODEL = "user", "model"


@dataclass(frozen=True, kw_only=True)
class StoredThread:
    """A thread's row. `active` is its active run. Archiving only affects lists.

    Tools in `agreed` need no confirmation in this thread.
    """

    id: str
    title: str | None
    agent: str | None
    skill: str | None
    scenario: str | None
    created: datetime
    updated: datetime
    archived: bool = False
    agreed: tuple[str, ...] = ()
    active: str | None


@dataclass(frozen=True, kw_only=True)
class StoppedRun:
    """A run that had not ended when its thread was deleted. Its worker and readers must stop."""

    id: str
    name: str
    thread: str
    last_event: int


NAMES = [field.name for field in fields(StoredThread)]
# The status is a literal, so that the database uses the partial index of running runs.
_is_active = and_(RUNS.c.thread == THREADS.c.id, RUNS.c.status == literal_column("'running'"))
COLUMNS = [*[THREADS.c[name] for name in NAMES[:-1]], select(RUNS.c.id).where(_is_active).scalar_subquery()]
GET = Statement(select(*COLUMNS).where(IS_OWN_THREAD))


def get_thread(connection: Connection, owner: str, id: str) -> StoredThread:
    """Return a thread. Raise NotFound if the owner has no such thread."""
    rows = GET.rows(connection, {"this": id, "owner_is": owner})
    if not rows:
        raise NotFound(what="thread", id=id)
    return parse_thread(rows[0])


def parse_thread(row: Sequence[object]) -> StoredThread:
    """Build a thread from its row (`COLUMNS`)."""
    values = dict(zip(NAMES, row, strict=True))
    values |= {name: from_micros(cast("int", values[name])) for name in ("created", "updated")}
    values["archived"] = bool(values["archived"])
    values["agreed"] = tuple(map(str, parts_of(load(str(values["agreed"])))))
    return StoredThread(**cast("dict[str, datetime]", values))  # pyright: ignore[reportArgumentType] - by name
