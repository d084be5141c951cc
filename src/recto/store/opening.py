"""Opening a database by its url. Refuses a url of another kind, without showing it: it may hold a password."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from recto.errors import SettingsError
from recto.store.database import Database
from recto.store.folder import make_private
from recto.store.migrate import migrate
from recto.store.postgres import PostgresDatabase, PostgresSettings
from recto.store.sqlite import SqliteDatabase, SqliteSettings

SQLITE, POSTGRES = "sqlite:///", "postgresql://"
DRIVEN = "postgresql+asyncpg://"
HIDDEN = "(not shown)"
URLS = f"it is {SQLITE}PATH or {POSTGRES}USER:PASSWORD@HOST/DATABASE"


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


async def open_database(
    url: str, *, sqlite: SqliteSettings | None = None, postgres: PostgresSettings | None = None
) -> Database:
    """Open the database at a url that was checked, and bring it to this version's tables."""
    if url.startswith(SQLITE):
        file = Path(url.removeprefix(SQLITE))
        make_private(file)
        database: Database = SqliteDatabase(file, sqlite)
    else:
        try:
            database = PostgresDatabase(url.replace(POSTGRES, DRIVEN, 1), postgres)
        except ModuleNotFoundError as error:
            allowed = f"PostgreSQL needs the package {error.name}: install recto[postgres]"
            raise SettingsError(name="RECTO_DATABASE_URL", value=HIDDEN, allowed=allowed) from error
    try:
        await database.write(migrate)
    except BaseException:
        await database.close()
        raise
    return database
