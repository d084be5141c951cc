"""Migration of a database from every revision."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Boolean, Connection, Integer, LargeBinary, MetaData, Table, inspect, select, text

from recto.errors import StoreDown
from recto.store.database.database import Database
from recto.store.database.opening import FOLDER, HEAD, migrate, read_version
from recto.store.database.postgres import PostgresDatabase
from recto.store.database.sqlite import SqliteDatabase
from recto.store.schema import METADATA
from recto.store.store import Store
from tests.store.suite.samples import admission
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.full

# Oldest first.
REVISIONS = tuple(script.revision for script in ScriptDirectory(str(FOLDER)).walk_revisions())[::-1]


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    if request.param == "sqlite":
        store: Database = SqliteDatabase(tmp_path / "recto.db")
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        store = PostgresDatabase(server.url(server.create_database()).replace("://", "+asyncpg://", 1))
    yield store
    await store.close()


def test_the_revisions_have_one_head():
    assert ScriptDirectory(str(FOLDER)).get_heads() == [HEAD]


@pytest.mark.parametrize("beginning", REVISIONS)
async def test_a_migration_from_any_revision_keeps_rows_and_gives_the_schema(database: Database, beginning: str):
    await bring_to(database, beginning)
    before = await database.write(fill_tables)
    assert before
    await database.write(migrate)
    assert await database.read(read_version) == HEAD
    assert await database.read(differences) == []
    assert await database.read(without_row_ids) == {"events", "segments"}
    after = await database.read(all_rows)
    for table, rows in before.items():
        rest = [{name: row[name] for name in rows[0] if name in row} for row in after[table]]
        assert rest == [{name: row[name] for name in row if name in after[table][0]} for row in rows]


async def test_an_empty_database_gets_the_same_tables_as_a_migrated_one(database: Database):
    await database.write(migrate)
    at_once = await database.read(describe_tables)
    assert await database.read(differences) == []
    await database.write(METADATA.drop_all)
    await database.write(lambda connection: connection.execute(text("DROP TABLE alembic_version")))
    await bring_to(database, REVISIONS[0])
    await database.write(migrate)
    assert at_once == await database.read(describe_tables)


async def test_S6_migrated_runs_get_the_free_tier_and_numbers_by_id(database: Database):
    await bring_to(database, "0005")
    await database.write(fill_tables)
    await database.write(partial(copy_run, ids=("b", "c", "a")))
    await database.write(migrate)
    await Store(database).runs.admit(replace(admission("new", "seven", owner="seven"), id="0"))
    rows = sorted((await database.read(all_rows))["runs"], key=itemgetter("number"))
    assert [row["id"] for row in rows] == ["a", "b", "c", "seven", "0"]
    assert {row["tier"] for row in rows[:4]} == {"free"}


async def test_a_newer_database_is_rejected_unchanged(database: Database):
    await database.write(migrate)
    await database.write(fill_tables)
    await database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    before = await database.read(all_rows)
    with pytest.raises(StoreDown, match=f"version 9999, newer than this Recto's {HEAD}"):
        await database.write(migrate)
    assert await database.read(all_rows) == before
    assert await database.read(read_version) == "9999"
    assert await database.read(differences) == []


async def test_a_failed_migration_leaves_no_table_behind(database: Database):
    # A table of another program has the name of one of ours.
    await database.write(lambda connection: connection.execute(text("CREATE TABLE profiles (note TEXT)")))
    with pytest.raises(Exception, match="already exists"):
        await database.write(migrate)
    assert await database.read(table_names) == {"profiles"}


async def test_two_servers_can_migrate_a_database_concurrently(postgres: PostgresServer):
    url = postgres.url(postgres.create_database()).replace("://", "+asyncpg://", 1)
    first, second = PostgresDatabase(url), PostgresDatabase(url)
    await asyncio.gather(first.write(migrate), second.write(migrate))
    assert await first.read(read_version) == HEAD
    assert await second.read(differences) == []
    await first.close()
    await second.close()


async def bring_to(database: Database, beginning: str) -> None:
    await database.write(partial(migrate, revision=beginning))
    assert await database.read(read_version) == beginning


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    return list(compare_metadata(context, METADATA))


def describe_tables(connection: Connection) -> Mapping[str, object]:
    """Return all that the database reports of tables and indexes, except for the order of columns."""
    if connection.dialect.name == "sqlite":
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type = 'index'"))
    else:
        rows = connection.execute(text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"))
    indexes = {str(name): "".join(str(sql).split()).replace('"', "") for name, sql in rows}
    result = inspect(connection)
    tables = {
        name: (
            sorted((column["name"], str(column["type"]), column["nullable"]) for column in result.get_columns(name)),
            result.get_pk_constraint(name)["constrained_columns"],
            sorted(str(sorted(key["constrained_columns"])) for key in result.get_foreign_keys(name)),
            sorted(str(check["sqltext"]) for check in result.get_check_constraints(name)),
        )
        for name in result.get_table_names()
    }
    return {**tables, **indexes}


def without_row_ids(connection: Connection) -> set[str]:
    """Return the tables that SQLite stores in key order. PostgreSQL has no such difference."""
    if connection.dialect.name != "sqlite":
        return {"events", "segments"}
    rows = connection.execute(text("SELECT name FROM pragma_table_list WHERE wr AND schema = 'main'"))
    return {row[0] for row in rows}


def fill_tables(connection: Connection) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """Insert one row into every table. All texts are equal, so every reference is valid."""
    for table in tables_of(connection):
        connection.execute(table.insert(), {column.name: some(column.type) for column in table.columns})
    return all_rows(connection)


def copy_run(connection: Connection, ids: Sequence[str]) -> None:
    table = next(table for table in tables_of(connection) if table.name == "runs")
    run = connection.execute(select(table)).mappings().one()
    for id in ids:
        connection.execute(table.insert(), {**run, "id": id, "name": id, "status": "queued"})


def some(kind: object) -> object:
    match kind:
        case Boolean():
            return True
        case Integer():
            return 7
        case LargeBinary():
            return b"\x00seven"
        case _:
            return "seven"


def all_rows(connection: Connection) -> Mapping[str, Sequence[Mapping[str, object]]]:
    result = {table.name: connection.execute(select(table)).mappings() for table in tables_of(connection)}
    return {name: [dict(row) for row in rows] for name, rows in result.items()}


def tables_of(connection: Connection) -> list[Table]:
    result = MetaData()
    result.reflect(connection)
    return [table for table in result.sorted_tables if table.name != "alembic_version"]


def table_names(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())
