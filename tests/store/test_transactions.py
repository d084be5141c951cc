"""One transaction for each question: what the docstrings of the store promise, read from its code, and tried."""

import ast
import asyncio
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.util import await_only

from recto.errors import StoreDown
from recto.store import store
from recto.store.database.opening import migrate
from recto.store.database.postgres import PostgresDatabase
from recto.store.database.sqlite import SqliteDatabase
from recto.store.users.user_records import UserRecords

ASKS = {"read", "write", "write_first"}
# They ask more than once, and each has its reason.
ASK_AGAIN = {
    # Nobody has anything to do with what it writes and reads.
    "probe",
    # Until nothing is missing: what is answered is of one transaction.
    "_with_sent",
}
# They hand the database on, to go through more than one transaction may hold: each piece looks again before it acts.
IN_PIECES = {
    *("delete_thread", "delete_user", "delete_unused_attachments", "clean"),
    # As long as its reader takes; nothing may be held for that long. Each page is of one moment.
    "export_user",
}
# Hold the database for others, and ask nothing.
KEEPERS = {"__init__"}
ADD_NOTE = text("INSERT INTO notes (name, value) VALUES ('n', '1')")
COUNT_NOTES = text("SELECT count(*) FROM notes")
PATIENCE = 20


def test_each_method_of_the_store_is_one_transaction():
    methods = {name: list(_uses(method)) for name, method in _methods()}
    assert {name for name, uses in methods.items() if any(use == "handed on" for use in uses)} == IN_PIECES | KEEPERS
    assert {name for name, uses in methods.items() if _is_asked_again(uses)} == ASK_AGAIN
    assert len([name for name, uses in methods.items() if uses == ["asked"]]) > 50


async def test_a_read_on_sqlite_sees_one_moment(tmp_path: Path):
    database = SqliteDatabase(tmp_path / "recto.db")
    await database.write(migrate)
    looked, written = threading.Event(), threading.Event()

    def look_twice(connection: Connection) -> tuple[int, int]:
        first = count_notes(connection)
        looked.set()
        assert written.wait(PATIENCE)
        return first, count_notes(connection)

    reading = asyncio.create_task(database.read(look_twice))
    await asyncio.to_thread(looked.wait, PATIENCE)
    await database.write(add_note)
    written.set()
    assert await reading == (0, 0)
    assert await database.read(count_notes) == 1
    await database.close()


@pytest.mark.full
async def test_a_read_on_postgres_sees_one_moment(postgres_url: str):
    database = PostgresDatabase(postgres_url.replace("://", "+asyncpg://", 1))

    def look_twice(connection: Connection) -> tuple[int, int]:
        first = count_notes(connection)
        await_only(database.write(add_note))
        return first, count_notes(connection)

    assert await database.read(look_twice) == (0, 0)
    assert await database.read(count_notes) == 1
    await database.close()


@pytest.mark.full
async def test_a_read_on_postgres_cannot_write(postgres_url: str):
    database = PostgresDatabase(postgres_url.replace("://", "+asyncpg://", 1))
    with pytest.raises(StoreDown, match="read-only transaction"):
        await database.read(add_note)
    assert await database.read(count_notes) == 0
    await database.close()


def add_note(connection: Connection) -> None:
    connection.execute(ADD_NOTE)


def count_notes(connection: Connection) -> int:
    return connection.execute(COUNT_NOTES).scalar_one()


def _methods() -> Iterator[tuple[str, ast.AST]]:
    for kind in (store.Store, UserRecords):
        (found,) = ast.parse(inspect.getsource(kind)).body
        for node in found.body if isinstance(found, ast.ClassDef) else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, node


def _uses(method: ast.AST) -> Iterator[str]:
    """Each time the database is asked, in a loop or not, or handed on."""
    for node, parents in _walk(method, ()):
        if not (isinstance(node, ast.Attribute) and node.attr == "_database"):
            continue
        parent = parents[-1]
        if isinstance(parent, ast.Attribute):
            in_loop = any(isinstance(one, ast.While | ast.For | ast.AsyncFor | ast.comprehension) for one in parents)
            yield from ["asked" + " in a loop" * in_loop] if parent.attr in ASKS else []
        else:
            yield "handed on"


def _walk(node: ast.AST, parents: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    yield node, parents
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, (*parents, node))


def _is_asked_again(uses: list[str]) -> bool:
    return "asked in a loop" in uses or uses.count("asked") > 1
