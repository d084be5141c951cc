"""Opening a database by its url, and upgrading its tables step by step. No url is shown: it may hold a password."""

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
DRIVEN = "postgresql+asyncpg://"
HIDDEN = "(not shown)"
URLS = f"it is {SQLITE}PATH or {POSTGRES}USER:PASSWORD@HOST/DATABASE"
# The newest step in migrations/versions.
HEAD = "0012"
FOLDER = Path(__file__).parents[1] / "migrations"
VERSION_TABLE = """CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""
# Any number, the same in every process: only one of them migrates at a time.
LOCK = 7_726_386


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


def database_file(url: str) -> Path | None:
    """The file a database is in; None where a server keeps it."""
    return Path(url.removeprefix(SQLITE)) if _is_file(url) else None


async def open_database(
    url: str,
    *,
    sqlite: SqliteSettings | None = None,
    postgres: PostgresSettings | None = None,
    is_reader: bool = False,
) -> Database:
    """Open the database at a url that was checked, and bring it to this version's tables.

    One that is opened to be read is left as it is: a server of another version may be at work on it.
    """
    if file := database_file(url):
        if not is_reader:
            make_private(file)
        database: Database = SqliteDatabase(file, sqlite)
    else:
        # Here: its driver brings all of an object mapper along, which takes a quarter of a second to load.
        from recto.store.database.postgres import PostgresDatabase

        try:
            database = PostgresDatabase(url.replace(POSTGRES, DRIVEN, 1), postgres)
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
    """Upgrade, step by step. A database of a newer Recto is refused and left as it is."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    version = version_of(connection)
    if version == revision:
        return
    if version is None and revision == HEAD and not inspect(connection).get_table_names():
        _create_tables(connection)
        return
    from alembic import command  # here: a start that needs no upgrade does not pay for it
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    # In a configuration file % begins a reference; a path may hold one.
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        found = version_of(connection)
        raise StoreDown(problem=f"its tables are of version {found}, newer than this Recto's {HEAD}") from error


def _check_version(connection: Connection) -> None:
    if (version := version_of(connection)) != HEAD:
        problem = f"its tables are of version {version}, this Recto's of {HEAD}. Read it with the Recto that serves it"
        raise StoreDown(problem=problem)


def _create_tables(connection: Connection) -> None:
    """The tables of this version at once: an empty database has nothing to bring along step by step."""
    METADATA.create_all(connection)
    connection.execute(text(VERSION_TABLE))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def version_of(connection: Connection) -> str | None:
    """The newest step a database has taken; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
