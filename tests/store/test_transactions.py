"""Each repository method is one transaction, as its source says, with one snapshot."""

import asyncio
import inspect
import re
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.util import await_only

from recto.errors import StoreDown
from recto.store.database.opening import migrate
from recto.store.database.postgres import PostgresDatabase
from recto.store.database.sqlite import SqliteDatabase
from recto.store.store import Store

SINGLE = re.compile(
    r"self\._?database\.(?:read|write|write_first)\(|^    @(?:\w+_transaction|key_lookup|priority_write)\b",
    re.MULTILINE,
)
REPEATED = re.compile(r"^ +(?:async )?(?:while|for) (?:.*:$[\s\S]*|.*)self\._?database\.", re.MULTILINE)
PASSED_ON = re.compile(r"self\._?database\b(?!\.)")
# Methods with more than one transaction, and the reason.
SEVERAL = {
    # Its write and its read are unrelated.
    "Store.probe",
    # Repeats until nothing is missing; the result comes from one transaction.
    "Messages._read_parsed",
    # Searches without a write lock; the deletion checks again what it deletes.
    "Files.delete_unused",
}
# Methods that pass the database on, because their work is too large for one transaction.
IN_PIECES = {
    *("Threads.delete", "Threads.clean", "Users.delete"),
    # Takes as long as its reader does. Each page is one transaction.
    "Users.export",
}
ADD_NOTE = text("INSERT INTO notes (name, value) VALUES ('n', '1')")
COUNT_NOTES = text("SELECT count(*) FROM notes")
PATIENCE = 20


async def test_each_method_of_a_repository_is_one_transaction(tmp_path: Path):
    store = Store(SqliteDatabase(tmp_path / "recto.db"))
    kinds: list[type[object]] = [
        Store,
        *[type(part) for part in vars(store).values() if type(part).__module__.startswith("recto.store")],
    ]
    sources = {
        f"{kind.__name__}.{name}": inspect.getsource(method)
        for kind in kinds
        if kind is not SqliteDatabase
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and name != "__init__"
    }
    assert {name for name, source in sources.items() if PASSED_ON.search(source)} == IN_PIECES
    several = {name for name, source in sources.items() if len(SINGLE.findall(source)) > 1 or REPEATED.search(source)}
    assert several == SEVERAL
    assert len([name for name, source in sources.items() if SINGLE.search(source)]) > 50


async def test_a_read_on_sqlite_has_one_snapshot(tmp_path: Path):
    database = SqliteDatabase(tmp_path / "recto.db")
    await database.write(migrate)
    looked, result = threading.Event(), threading.Event()

    def look_twice(connection: Connection) -> tuple[int, int]:
        first = count_notes(connection)
        looked.set()
        assert result.wait(PATIENCE)
        return first, count_notes(connection)

    reading = asyncio.create_task(database.read(look_twice))
    await asyncio.to_thread(looked.wait, PATIENCE)
    await database.write(add_note)
    result.set()
    assert await reading == (0, 0)
    assert await database.read(count_notes) == 1
    await database.close()


@pytest.mark.full
async def test_a_read_on_postgres_has_one_snapshot_and_cannot_write(postgres_url: str):
    database = PostgresDatabase(postgres_url.replace("://", "+asyncpg://", 1))

    def look_twice(connection: Connection) -> tuple[int, int]:
        first = count_notes(connection)
        await_only(database.write(add_note))
        return first, count_notes(connection)

    assert await database.read(look_twice) == (0, 0)
    with pytest.raises(StoreDown, match="read-only transaction"):
        await database.read(add_note)
    assert await database.read(count_notes) == 1
    await database.close()


def add_note(connection: Connection) -> None:
    connection.execute(ADD_NOTE)


def count_notes(connection: Connection) -> int:
    return connection.execute(COUNT_NOTES).scalar_one()
