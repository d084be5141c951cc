"""Bringing a database to the tables of this version. One that is there already costs one question."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from recto.errors import StoreDown

# The newest step in migrations/versions.
HEAD = "0006"
FOLDER = Path(__file__).parent / "migrations"
# Any number, the same in every process: only one of them migrates at a time.
LOCK = 7_726_386


def migrate(connection: Connection, revision: str = HEAD) -> None:
    """Upgrade, step by step. A database of a newer Recto is refused and left as it is."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    if version_of(connection) == revision:
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


def version_of(connection: Connection) -> str | None:
    """The newest step a database has taken; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
