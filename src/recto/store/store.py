"""The store: repositories of one database, the same on SQLite and PostgreSQL. Each method is one transaction."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection, bindparam, func, select, text

from recto.config.run_settings import PostgresSettings, SqliteSettings
from recto.store.database.database import Database, Repository, read_transaction, write_transaction
from recto.store.database.opening import check_url, open_database
from recto.store.files.datasets import Datasets
from recto.store.files.files import Files
from recto.store.log.logs import Logs
from recto.store.runs.calls import Calls
from recto.store.runs.events import Events
from recto.store.runs.relays import Relays
from recto.store.runs.runs import Runs
from recto.store.schema import NOTES, RUNS
from recto.store.statement import Statement, insert_missing, upsert
from recto.store.threads.messages import Messages
from recto.store.threads.threads import Threads
from recto.store.users.users import Users

FIND_NOTE = Statement(select(NOTES.c.value).where(NOTES.c.name == bindparam("this")))
ADD_NOTE = insert_missing(NOTES, ("name", "value"))
SET_NOTE = upsert(NOTES, ("name",), ("value",), ("name", "value"))


async def open_store(
    url: str, *, sqlite: SqliteSettings | None = None, postgres: PostgresSettings | None = None, is_reader: bool = False
) -> Store:
    """Open a database and migrate it to this version. A reader does not migrate, but requires this version."""
    return Store(await open_database(check_url(url), sqlite=sqlite, postgres=postgres, is_reader=is_reader))


class Store:
    """The repositories of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.runs = Runs(database)
        self.events = Events(database)
        self.calls = Calls(database)
        self.relays = Relays(database)
        self.log = Logs(database)
        self.messages = Messages(database)
        self.threads = Threads(database)
        self.files = Files(database)
        self.datasets = Datasets(database)
        self.users = Users(database)
        self.notes = Notes(database)

    @property
    def problem(self) -> str | None:
        """Reason why writes fail; None while they succeed."""
        return self._database.problem

    @property
    def is_shared(self) -> bool:
        """True if several servers may use this database at once."""
        return self._database.is_shared

    async def probe(self) -> None:
        """Check that writes and reads work. Raise the error that prevents them."""
        touch = text("UPDATE alembic_version SET version_num = version_num")
        count = select(func.count()).where(RUNS.c.status == "queued")
        await self._database.write(lambda connection: connection.execute(touch).rowcount)
        await self._database.read(lambda connection: connection.execute(count).scalar_one())

    def forget(self) -> None:
        """Drop compiled statements, because they retain the values of their first use."""
        self._database.forget()

    async def close(self) -> None:
        """Finish pending writes, then close."""
        await self.events.close()
        await self._database.close()


class Notes(Repository):
    """Notes: short values by name that all servers of a database share."""

    @read_transaction
    def find(self, connection: Connection, name: str) -> str | None:
        """Return the value of a note, or None."""
        rows = FIND_NOTE.rows(connection, {"this": name})
        return cast("str", rows[0][0]) if rows else None

    @write_transaction
    def add(self, connection: Connection, name: str, value: str) -> str:
        """Store a note unless it exists, and return the stored value. Concurrent callers all get the same value."""
        ADD_NOTE.run_many(connection, [{"name": name, "value": value}])
        return cast("str", FIND_NOTE.rows(connection, {"this": name})[0][0])

    @write_transaction
    def set(self, connection: Connection, name: str, value: str) -> None:
        """Set the value of a note."""
        SET_NOTE.run_many(connection, [{"name": name, "value": value}])
