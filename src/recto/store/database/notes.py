"""Notes: short values by name that all servers of a database share."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection, bindparam, select

from recto.store.database.database import Repository, read_transaction, write_transaction
from recto.store.schema import NOTES
from recto.store.statement import Statement, insert_missing, upsert

COLUMNS = ("name", "value")
FIND = Statement(select(NOTES.c.value).where(NOTES.c.name == bindparam("this")))
ADD = insert_missing(NOTES, COLUMNS)
SET = upsert(NOTES, ("name",), ("value",), COLUMNS)


class Notes(Repository):
    """Short values by name."""

    @read_transaction
    def find(self, connection: Connection, name: str) -> str | None:
        """Return the value of a note, or None."""
        rows = FIND.rows(connection, {"this": name})
        return cast("str", rows[0][0]) if rows else None

    @write_transaction
    def add(self, connection: Connection, name: str, value: str) -> str:
        """Store a note if there is none, and return the stored value. Concurrent callers all get the same value."""
        ADD.run_many(connection, [{"name": name, "value": value}])
        return cast("str", FIND.rows(connection, {"this": name})[0][0])

    @write_transaction
    def set(self, connection: Connection, name: str, value: str) -> None:
        """Set the value of a note."""
        SET.run_many(connection, [{"name": name, "value": value}])
