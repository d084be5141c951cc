"""The store: every method one transaction, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import ArgumentError

from recto.errors import SettingsError
from recto.page import Entry
from recto.store import progress, reads, runs
from recto.store.chorus import Chorus
from recto.store.database import Database
from recto.store.migrate import migrate
from recto.store.ports import (
    Admission,
    Admitted,
    Cancel,
    Change,
    Claimant,
    Lease,
    StoredCall,
    StoredEvent,
    StoredRun,
    Written,
)
from recto.store.postgres import PostgresDatabase, PostgresSettings
from recto.store.sqlite import SqliteDatabase, SqliteSettings

SQLITE, POSTGRES = "sqlite:///", "postgresql://"
DRIVEN = "postgresql+asyncpg://"
HIDDEN = "(not shown)"
URLS = f"it is {SQLITE}PATH or {POSTGRES}USER:PASSWORD@HOST/DATABASE"


async def open_store(
    url: str, *, sqlite: SqliteSettings | None = None, postgres: PostgresSettings | None = None
) -> Store:
    """Open a database and bring it to this version's tables."""
    found = check_url(url)
    if found.startswith(SQLITE):
        database: Database = SqliteDatabase(Path(found.removeprefix(SQLITE)), sqlite)
    else:
        database = PostgresDatabase(found.replace(POSTGRES, DRIVEN, 1), postgres)
    try:
        await database.write(migrate)
    except BaseException:
        await database.close()
        raise
    return Store(database)


def check_url(url: str) -> str:
    """The url of a database, in the spelling used here. One that is none raises SettingsError, which hides it."""
    found = re.sub(r"\Apostgres://", POSTGRES, url)
    if not (_is_file(found) or _is_server(found)):
        raise SettingsError(name="RECTO_DATABASE_URL", value=HIDDEN, allowed=URLS)
    return found


def _is_file(url: str) -> bool:
    return url.startswith(SQLITE) and url != SQLITE


def _is_server(url: str) -> bool:
    try:
        return url.startswith(POSTGRES) and bool(make_url(url).host or make_url(url).query.get("host"))
    except (ArgumentError, ValueError):
        return False


class Store:
    """Log, runs, events and calls, in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._chorus = Chorus(database)

    @property
    def problem(self) -> str | None:
        """Why writes fail at present; None while they succeed."""
        return self._database.problem

    async def probe(self) -> None:
        """Write and read, as everything else does. Raises what stands in the way."""
        await self._database.write(_touch)
        await self._database.read(reads.count_waiting)

    async def close(self) -> None:
        """Finish what waits, then close."""
        await self._chorus.close()
        await self._database.close()

    # Runs

    async def admit(self, admission: Admission, who: Claimant | None = None) -> Admitted:
        """Store a run with its input, and claim it for `who` if its thread is free.

        The same request again finds the same run; another under its name: Conflict.
        """
        return await self._database.write(partial(runs.admit, admission=admission, who=who))

    async def find_run(self, owner: str, id: str) -> StoredRun:
        """A run by the server's id or by the client's name for it. Somebody else's: NotFound."""
        return await self._database.read(partial(runs.find, owner=owner, id=id))

    async def cancel(self, run: StoredRun, wish: Cancel) -> StoredRun:
        """Write down that a run is to end."""
        return await self._database.write(partial(runs.cancel, run=run, wish=wish))

    async def claim(self, who: Claimant, now: datetime, limit: int) -> Sequence[StoredRun]:
        """Take up to `limit` runs that nobody works on."""
        return await self._database.write(partial(runs.claim, who=who, now=now, limit=limit))

    async def renew(self, who: Claimant, leases: Sequence[Lease], now: datetime) -> Sequence[Lease]:
        """Hold these leases longer. Returns those still held."""
        return await self._database.write(partial(runs.renew, who=who, leases=leases, now=now))

    async def hand_back(self, leases: Sequence[Lease], at: datetime) -> None:
        """Give these runs up, for anybody to go on with from that time on."""
        await self._database.write(partial(runs.hand_back, leases=leases, at=at))

    async def recover(self, who: Claimant, now: datetime) -> int:
        """Free what an earlier boot of this node left claimed."""
        return await self._database.write(partial(runs.recover, who=who, now=now))

    async def cancels(self, held: Sequence[str]) -> Sequence[str]:
        """Of these runs, those that are to end."""
        return await self._database.read(partial(runs.cancels, runs=held))

    async def record(self, lease: Lease, change: Change, now: datetime) -> Written:
        """Write a change under its fence. Another worker has the run: LeaseLost, and nothing is written."""
        return await self._database.write(partial(progress.record, lease=lease, change=change, now=now))

    async def say(self, lease: Lease, events: Sequence[bytes]) -> Written:
        """Add events and nothing else, together with those of other runs. Under the fence, as `record` is."""
        return await self._chorus.say(lease, events)

    # What was written

    async def log_after(self, thread: str, seq: int = 0) -> Sequence[Entry]:
        """The entries of a log behind a number, in order."""
        return await self._database.read(partial(reads.log_after, thread=thread, seq=seq))

    async def events(self, run: str, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events of a run behind a number, in order."""
        return await self._database.read(partial(reads.events_after, run=run, number=after, limit=limit))

    async def calls(self, run: str) -> Sequence[StoredCall]:
        """The model calls of a run, in order, each as it was sent."""
        return await self._database.read(partial(reads.calls_of, run=run))


def _touch(connection: Connection) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = version_num"))
