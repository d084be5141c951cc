"""Opening a database by its URL, and schema migrations. Errors never contain the URL, which may hold a password."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Connection, inspect, make_url, text
from sqlalchemy.exc import ArgumentError

from recto.config.run_settings import PostgresSettings, SqliteSettings
from recto.errors import SettingsError, StoreDown
from recto.store.database.database import Database
from recto.store.database.folder import make_private
from recto.store.database.sqlite import SqliteDatabase
from recto.store.schema import METADATA

SQLITE, POSTGRES = "sqlite:///", "postgresql://"
ASYNCPG = "postgresql+asyncpg://"
HIDDEN = "(not shown)"
ALLOWED_URLS = f"it is {SQLITE}PATH or {POSTGRES}USER:PASSWORD@HOST/DATABASE"
# The newest revision in migrations/versions.
HEAD = "0012"
FOLDER = Path(__file__).parents[1] / "migrations"
VERSION_TABLE = """CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""
# An arbitrary lock number that is the same in every process, so that only one process migrates at a time.
LOCK = 7_726_386


def check_url(url: str) -> str:
    """Return the normalized URL of a database. Raise SettingsError for an invalid URL, without showing the URL."""
    normalized = re.sub(r"\Apostgres://", POSTGRES, url)
    try:
        parts = make_url(normalized) if normalized.startswith(POSTGRES) else None
        is_server = parts is not None and bool(parts.host or parts.query.get("host"))
    except (ArgumentError, ValueError):
        is_server = False
    if not (is_server or database_file(normalized)):
        raise SettingsError(name="RECTO_DATABASE_URL", value=HIDDEN, allowed=ALLOWED_URLS)
    return normalized


def database_file(url: str) -> Path | None:
    """Return the file of an SQLite database, or None."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) and url != SQLITE else None


async def open_database(
    url: str, *, sqlite: SqliteSettings | None = None, postgres: PostgresSettings | None = None, is_reader: bool = False
) -> Database:
    """Open the database at a checked URL and migrate it to this version.

    A reader does not migrate, because a server of another version may be using the database.
    """
    if file := database_file(url):
        if not is_reader:
            make_private(file)
        database: Database = SqliteDatabase(file, sqlite)
    else:
        # here: the driver loads SQLAlchemy's asyncio layer, which takes a quarter of a second
        from recto.store.database.postgres import PostgresDatabase

        try:
            database = PostgresDatabase(url.replace(POSTGRES, ASYNCPG, 1), postgres)
        except ModuleNotFoundError as error:
            allowed = f"PostgreSQL needs the package {error.name}: install recto[postgres]"
            raise SettingsError(name="RECTO_DATABASE_URL", value=HIDDEN, allowed=allowed) from error
    try:
        await (database.read(_check_version) if is_reader else database.write(migrate))
    except BaseException:
        await database.close()
        raise
    return database


def migrate(connection: Connection, revision: str = HEAD) -> None:
    """Migrate to a revision, step by step. Reject a database of a newer Recto without changing it."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    version = read_version(connection)
    if version == revision:
        return
    if version is None and revision == HEAD and not inspect(connection).get_table_names():
        # An empty database needs no migration steps.
        METADATA.create_all(connection)
        connection.execute(text(VERSION_TABLE))
        connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
        return
    from alembic import command  # here: a start without a migration does not need alembic
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    # Escape %, which may be part of a path, because the configuration parser expands it.
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        problem = f"its tables are of version {read_version(connection)}, newer than this Recto's {HEAD}"
        raise StoreDown(problem=problem) from error


def _check_version(connection: Connection) -> None:
    if (version := read_version(connection)) != HEAD:
        problem = f"its tables are of version {version}, this Recto's of {HEAD}. Read it with the Recto that serves it"
        raise StoreDown(problem=problem)


def read_version(connection: Connection) -> str | None:
    """Return the revision of a database; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
