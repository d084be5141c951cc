"""The store: repositories of one database, the same on SQLite and PostgreSQL. Each method is one transaction."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, text

from recto.config.run_settings import PostgresSettings, SqliteSettings
from recto.store.database.database import Database
from recto.store.database.notes import Notes
from recto.store.database.opening import check_url, open_database
from recto.store.files.datasets import Datasets
from recto.store.files.files import Files
from recto.store.log.logs import Logs
from recto.store.runs.events import Events
from recto.store.runs.relays import Relays
from recto.store.runs.runs import Runs
from recto.store.runs.stored_calls import Calls
from recto.store.schema import RUNS
from recto.store.threads.messages import Messages
from recto.store.threads.threads import Threads
from recto.store.users.users import Users


async def open_store(
    url: str,
    *,
    sqlite: SqliteSettings | None = None,
    postgres: PostgresSettings | None = None,
    is_reader: bool = False,
) -> Store:
    """Open a database and migrate it to this version. A reader requires that version instead."""
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
        """Write and read like other work. Raise the error that prevents it."""
        await self._database.write(_touch)
        await self._database.read(_count_runs)

    def forget(self) -> None:
        """Drop compiled statements: they hold the values of their first use."""
        self._database.forget()

    async def close(self) -> None:
        """Finish pending writes, then close."""
        await self.events.close()
        await self._database.close()


def _count_runs(connection: Connection) -> int:
    return connection.execute(select(func.count()).where(RUNS.c.status == "queued")).scalar_one()


def _touch(connection: Connection) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = version_num"))
