"""SQL statements built once with SQLAlchemy. On SQLite their text goes straight to the driver: most of the speed.

Values have to be what the driver takes, because no type converts them on that way: numbers, text, bytes, None.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TypeAlias, TypeVar, cast

from sqlalchemy import BindParameter, Column, Connection, Delete, Insert, Select, Table, Update, bindparam
from sqlalchemy.dialects import postgresql, sqlite

Clause: TypeAlias = Select[*tuple[object, ...]] | Select[int] | Update | Delete | Insert
Value: TypeAlias = str | int | bytes | None
StatementValues: TypeAlias = Mapping[str, Value]
SQLITE = "sqlite"
# Databases limit how many values one question may name.
AT_ONCE = 500
Piece = TypeVar("Piece")


class Statement:
    """A statement with named parameters. `columns` are those an insert fills."""

    def __init__(
        self, clause: Clause, *, columns: Sequence[str] | None = None, on_sqlite: Clause | None = None
    ) -> None:
        self._clause = clause
        self._columns = columns
        self._on_sqlite: Clause = clause if on_sqlite is None else on_sqlite

    @cached_property
    def _plain(self) -> tuple[str, tuple[str, ...], Mapping[str, Value]]:
        """The text for SQLite, the names of its parameters in their order, and those that are always the same."""
        compiled = self._on_sqlite.compile(dialect=sqlite.dialect(), column_keys=self._columns)
        fixed = {name: value for name, value in compiled.params.items() if value is not None}
        return str(compiled), tuple(cast("Sequence[str]", compiled.positiontup)), fixed

    def rows(self, connection: Connection, values: StatementValues) -> Sequence[Sequence[object]]:
        """The rows it finds or returns."""
        if connection.dialect.name == SQLITE:
            return self._run(connection, values).fetchall()
        return cast("Sequence[Sequence[object]]", connection.execute(self._clause, values).all())

    def count(self, connection: Connection, values: StatementValues) -> int:
        """How many rows it changed."""
        if connection.dialect.name == SQLITE:
            return self._run(connection, values).rowcount
        return connection.execute(self._clause, values).rowcount

    def many(self, connection: Connection, rows: Sequence[StatementValues]) -> None:
        """Run it for each of some rows."""
        if not rows:
            return
        if connection.dialect.name == SQLITE:
            text, names, fixed = self._plain
            driver(connection).executemany(text, [_ordered(names, fixed, row) for row in rows])
        else:
            connection.execute(self._clause, rows)

    def _run(self, connection: Connection, values: StatementValues) -> sqlite3.Cursor:
        text, names, fixed = self._plain
        return driver(connection).execute(text, _ordered(names, fixed, values))


def _ordered(names: Sequence[str], fixed: StatementValues, values: StatementValues) -> list[Value]:
    return [values[name] if name in values else fixed[name] for name in names]


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def insert_into(table: Table, columns: Iterable[str]) -> Statement:
    """Insert rows with these columns. A row that is there already is an error."""
    return Statement(table.insert(), columns=tuple(columns))


def insert_missing(table: Table, columns: Iterable[str]) -> Statement:
    """Insert rows with these columns, but those that are there already."""
    clause = postgresql.insert(table).on_conflict_do_nothing()
    return Statement(clause, columns=tuple(columns), on_sqlite=sqlite.insert(table).on_conflict_do_nothing())


def upsert(table: Table, key: Sequence[str], changed: Sequence[str], columns: Sequence[str]) -> Statement:
    """Insert a row with these columns, or write over the changed ones of the row that has its key."""
    on_postgres, on_sqlite = (
        clause.on_conflict_do_update(index_elements=key, set_={name: clause.excluded[name] for name in changed})
        for clause in (postgresql.insert(table), sqlite.insert(table))
    )
    return Statement(on_postgres, columns=columns, on_sqlite=on_sqlite)


def in_pieces(values: Sequence[Piece], size: int = AT_ONCE) -> Iterator[Sequence[Piece]]:
    """Values that are too many for one question, so many at a time."""
    return (values[at : at + size] for at in range(0, len(values), size))


def param(name: str, column: Column[object]) -> BindParameter[object]:
    """A parameter that takes what the column holds."""
    return bindparam(name, type_=column.type)


def apart(connection: Connection) -> AbstractContextManager[object]:
    """Where another process may come between a look and a change: what fails in here spoils nothing around it."""
    return nullcontext() if connection.dialect.name == SQLITE else connection.begin_nested()
