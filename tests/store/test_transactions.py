"""One transaction for each question: what the docstrings of the store promise, read from its code, and tried."""

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
from recto.store.users.user_records import UserRecords

ASKED = re.compile(r"self\._database\.(?:read|write|write_first)\(")
ASKED_IN_A_LOOP = re.compile(r"^ +(?:async )?(?:while|for) (?:.*:$[\s\S]*|.*)self\._database\.", re.MULTILINE)
HANDED_ON = re.compile(r"self\._database\b(?!\.)")
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
    methods = [method for kind in (Store, UserRecords) for method in vars(kind).values() if inspect.isfunction(method)]
    sources = {method.__name__: inspect.getsource(method) for method in methods}
    assert {name for name, source in sources.items() if HANDED_ON.search(source)} == IN_PIECES | KEEPERS
    again = {
        name for name, source in sources.items() if len(ASKED.findall(source)) > 1 or ASKED_IN_A_LOOP.search(source)
    }
    assert again == ASK_AGAIN
    assert len([name for name, source in sources.items() if ASKED.search(source)]) > 50


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
async def test_a_read_on_postgres_sees_one_moment_and_cannot_write(postgres_url: str):
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
