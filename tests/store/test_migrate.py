"""Bringing a database to this version's tables, from each there ever was."""

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
        opened: Database = SqliteDatabase(tmp_path / "recto.db")
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        opened = PostgresDatabase(server.url(server.create_database()).replace("://", "+asyncpg://", 1))
    yield opened
    await opened.close()


def test_the_head_is_the_newest_step():
    assert ScriptDirectory(str(FOLDER)).get_heads() == [HEAD]
    assert REVISIONS[-1] == HEAD


@pytest.mark.parametrize("beginning", REVISIONS)
async def test_from_every_older_version_rows_stay_and_the_tables_become_those_of_the_schema(
    database: Database, beginning: str
):
    await bring_to(database, beginning)
    before = await database.write(fill_tables)
    assert before
    await database.write(migrate)
    assert await database.read(read_version) == HEAD
    assert await database.read(differences) == []
    assert await database.read(without_row_ids) == {"events", "segments"}
    after = await database.read(all_rows)
    for table, rows in before.items():
        kept = [{name: row[name] for name in rows[0] if name in row} for row in after[table]]
        assert kept == [{name: row[name] for name in row if name in after[table][0]} for row in rows]


async def test_an_empty_database_gets_at_once_what_the_steps_come_to(database: Database):
    await database.write(migrate)
    at_once = await database.read(built)
    assert await database.read(differences) == []
    await database.write(METADATA.drop_all)
    await database.write(lambda connection: connection.execute(text("DROP TABLE alembic_version")))
    await bring_to(database, REVISIONS[0])
    await database.write(migrate)
    assert at_once == await database.read(built)


async def test_S6_runs_from_before_tiers_and_numbers_are_free_ones_in_the_order_of_their_ids(database: Database):
    await bring_to(database, "0005")
    await database.write(fill_tables)
    await database.write(partial(copy_run, ids=("b", "c", "a")))
    await database.write(migrate)
    await Store(database).runs.admit(replace(admission("new", "seven", owner="seven"), id="0"))
    rows = sorted((await database.read(all_rows))["runs"], key=itemgetter("number"))
    assert [row["id"] for row in rows] == ["a", "b", "c", "seven", "0"]
    assert {row["tier"] for row in rows[:4]} == {"free"}


async def test_a_newer_database_is_refused_and_untouched(database: Database):
    await database.write(migrate)
    await database.write(fill_tables)
    await database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    before = await database.read(all_rows)
    with pytest.raises(StoreDown, match=f"version 9999, newer than this Recto's {HEAD}"):
        await database.write(migrate)
    assert await database.read(all_rows) == before
    assert await database.read(read_version) == "9999"
    assert await database.read(differences) == []


async def test_a_step_that_fails_leaves_no_table_behind(database: Database):
    # One table of the way is taken, by something that is not ours.
    await database.write(lambda connection: connection.execute(text("CREATE TABLE profiles (note TEXT)")))
    with pytest.raises(Exception, match="already exists"):
        await database.write(migrate)
    assert await database.read(table_names) == {"profiles"}


async def test_two_servers_may_migrate_a_database_at_once(postgres: PostgresServer):
    url = postgres.url(postgres.create_database()).replace("://", "+asyncpg://", 1)
    first, second = PostgresDatabase(url), PostgresDatabase(url)
    await asyncio.gather(first.write(migrate), second.write(migrate))
    assert await first.read(read_version) == HEAD
    assert await second.read(differences) == []
    await first.close()
    await second.close()


# What the tests above use, in that order


async def bring_to(database: Database, beginning: str) -> None:
    await database.write(partial(migrate, revision=beginning))
    assert await database.read(read_version) == beginning


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    return list(compare_metadata(context, METADATA))


def built(connection: Connection) -> Mapping[str, object]:
    """Of each table and index all that the database itself says, but for the order of columns."""
    if connection.dialect.name == "sqlite":
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type = 'index'"))
    else:
        rows = connection.execute(text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"))
    indexes = {str(name): "".join(str(sql).split()).replace('"', "") for name, sql in rows}
    found = inspect(connection)
    tables = {
        name: (
            sorted((column["name"], str(column["type"]), column["nullable"]) for column in found.get_columns(name)),
            found.get_pk_constraint(name)["constrained_columns"],
            sorted(str(sorted(key["constrained_columns"])) for key in found.get_foreign_keys(name)),
            sorted(str(check["sqltext"]) for check in found.get_check_constraints(name)),
        )
        for name in found.get_table_names()
    }
    return {**tables, **indexes}


def without_row_ids(connection: Connection) -> set[str]:
    """Tables SQLite keeps in the order of their key. On PostgreSQL there is nothing to tell apart."""
    if connection.dialect.name != "sqlite":
        return {"events", "segments"}
    rows = connection.execute(text("SELECT name FROM pragma_table_list WHERE wr AND schema = 'main'"))
    return {row[0] for row in rows}


def fill_tables(connection: Connection) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """One row in every table there is, whatever its columns. All texts are the same, so every reference is met."""
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
    found = {table.name: connection.execute(select(table)).mappings() for table in tables_of(connection)}
    return {name: [dict(row) for row in rows] for name, rows in found.items()}


def tables_of(connection: Connection) -> list[Table]:
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def table_names(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())
