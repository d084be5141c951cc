"""SQL statements that are built once with SQLAlchemy.

On SQLite, their text goes directly to the driver, which saves most of the time. No type converts values on that path,
so values must be types that the driver accepts: numbers, text, bytes, None.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TypeAlias, TypeVar, cast

from sqlalchemy import BindParameter, Column, Connection, Delete, Insert, Select, Table, Update, bindparam
from sqlalchemy.dialects import postgresql, sqlite

Clause: TypeAlias = Select[*tuple[object, ...]] | Select[int] | Update | Delete | Insert
OnConflictInsert: TypeAlias = postgresql.Insert | sqlite.Insert
Value: TypeAlias = str | int | bytes | None
StatementValues: TypeAlias = Mapping[str, Value]
SQLITE = "sqlite"
# Databases limit the number of parameters of a query.
BATCH_SIZE = 500
Item = TypeVar("Item")


class Statement:
    """A statement with named parameters. `columns` are the columns of an insert."""

    def __init__(
        self, clause: Clause, *, columns: Sequence[str] | None = None, on_sqlite: Clause | None = None
    ) -> None:
        self._clause = clause
        self._columns = columns
        self._on_sqlite: Clause = clause if on_sqlite is None else on_sqlite

    @cached_property
    def _plain(self) -> tuple[str, tuple[str, ...], Mapping[str, Value]]:
        """Return the text for SQLite, its parameter names in order, and its constant parameters."""
        compiled = self._on_sqlite.compile(dialect=sqlite.dialect(), column_keys=self._columns)
        fixed = {name: value for name, value in compiled.params.items() if value is not None}
        return str(compiled), tuple(cast("Sequence[str]", compiled.positiontup)), fixed

    def rows(self, connection: Connection, values: StatementValues) -> Sequence[Sequence[object]]:
        """Return the rows that the statement selects or returns."""
        if connection.dialect.name == SQLITE:
            return self._run(connection, values).fetchall()
        return cast("Sequence[Sequence[object]]", connection.execute(self._clause, values).all())

    def count(self, connection: Connection, values: StatementValues) -> int:
        """Run the statement and return the number of changed rows."""
        if connection.dialect.name == SQLITE:
            return self._run(connection, values).rowcount
        return connection.execute(self._clause, values).rowcount

    def run_many(self, connection: Connection, rows: Sequence[StatementValues]) -> None:
        """Run the statement once per row of values."""
        if not rows:
            return
        if connection.dialect.name == SQLITE:
            text, names, fixed = self._plain
            get_driver(connection).executemany(text, [_order_values(names, fixed, row) for row in rows])
        else:
            connection.execute(self._clause, rows)

    def _run(self, connection: Connection, values: StatementValues) -> sqlite3.Cursor:
        text, names, fixed = self._plain
        return get_driver(connection).execute(text, _order_values(names, fixed, values))


def _order_values(names: Sequence[str], fixed: StatementValues, values: StatementValues) -> list[Value]:
    return [values[name] if name in values else fixed[name] for name in names]


def get_driver(connection: Connection) -> sqlite3.Connection:
    """Return the driver's own connection."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def insert_into(table: Table, columns: Iterable[str]) -> Statement:
    """Return a statement that inserts rows with these columns and fails on a duplicate."""
    return Statement(table.insert(), columns=tuple(columns))


def insert_missing(table: Table, columns: Iterable[str]) -> Statement:
    """Return a statement that inserts rows with these columns and skips duplicates."""
    return insert_or(table, tuple(columns), lambda insert: insert.on_conflict_do_nothing())


def upsert(table: Table, key: Sequence[str], changed: Sequence[str], columns: Sequence[str]) -> Statement:
    """Return a statement that inserts a row, or updates the `changed` columns of the row with its key."""

    def change(insert: OnConflictInsert) -> Insert:
        return insert.on_conflict_do_update(index_elements=key, set_={name: insert.excluded[name] for name in changed})

    return insert_or(table, columns, change)


def insert_or(table: Table, columns: Sequence[str], on_conflict: Callable[[OnConflictInsert], Clause]) -> Statement:
    """Return a statement that inserts a row. `on_conflict` adds the conflict clause for each of the two databases."""
    return Statement(
        on_conflict(postgresql.insert(table)), columns=columns, on_sqlite=on_conflict(sqlite.insert(table))
    )


def batches(values: Sequence[Item], size: int = BATCH_SIZE) -> Iterator[Sequence[Item]]:
    """Yield values in slices that fit into one query."""
    return (values[at : at + size] for at in range(0, len(values), size))


def param(name: str, column: Column[object]) -> BindParameter[object]:
    """Return a parameter with the type of a column."""
    return bindparam(name, type_=column.type)


def savepoint(connection: Connection) -> AbstractContextManager[object]:
    """Return a savepoint for a statement that may fail because of another process.

    SQLite has one writer and needs no savepoint.
    """
    return nullcontext() if connection.dialect.name == SQLITE else connection.begin_nested()
