"""SQL of notes: short texts, by name, that all servers of a database have to agree on."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection, bindparam, select

from recto.store.schema import NOTES
from recto.store.statement import Statement, insert_missing, upsert

COLUMNS = ("name", "value")
FIND = Statement(select(NOTES.c.value).where(NOTES.c.name == bindparam("this")))
ADD = insert_missing(NOTES, COLUMNS)
PUT = upsert(NOTES, ("name",), ("value",), COLUMNS)


def find(connection: Connection, name: str) -> str | None:
    """What a note says; None where there is none."""
    rows = FIND.rows(connection, {"this": name})
    return cast("str", rows[0][0]) if rows else None


def take(connection: Connection, name: str, value: str) -> str:
    """Write a note unless there is one. Returns what it says then: of many who come at once, all get the same."""
    ADD.many(connection, [{"name": name, "value": value}])
    return cast("str", FIND.rows(connection, {"this": name})[0][0])


def change(connection: Connection, name: str, value: str) -> None:
    """Have a note say this from now on."""
    PUT.many(connection, [{"name": name, "value": value}])
