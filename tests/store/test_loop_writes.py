"""Small writes to SQLite on the event loop."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from recto.config.run_settings import SqliteSettings
from recto.store.database.sqlite import CHECKPOINT_BYTES, MAX_LOG_BYTES, PAGE_BYTES, SqliteDatabase
from tests.store.test_sqlite import adding, commits, numbers
from tests.waiting import settle, wait_until

SMALL = 100
# Rows after which a checkpoint is due.
ROWS, PAGE_PART = CHECKPOINT_BYTES // PAGE_BYTES, 1_000


@asynccontextmanager
async def a_database(folder: Path, settings: SqliteSettings | None = None) -> AsyncGenerator[SqliteDatabase]:
    database = SqliteDatabase(folder / "recto.db", settings)
    await database.write(lambda connection: connection.execute(text("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")))
    yield database
    await database.close()


def thread(_connection: Connection) -> str:
    return threading.current_thread().name


async def test_small_writes_of_one_turn_of_the_loop_are_one_commit(tmp_path: Path):
    async with a_database(tmp_path) as database:
        before = commits(tmp_path)
        await asyncio.gather(*[database.write(adding(number), size=SMALL) for number in range(20)])
        assert commits(tmp_path) - before == 1
        assert await database.read(numbers) == [*range(20)]


@pytest.mark.parametrize(
    ("settings", "size", "is_near"),
    [
        (SqliteSettings(), SMALL, True),
        (SqliteSettings(), SqliteSettings().near_bytes, False),
        (SqliteSettings(), None, False),
        (SqliteSettings(near_bytes=0), 0, False),
        # A commit that waits for the disk would block the loop.
        (SqliteSettings(synchronous="FULL"), SMALL, False),
    ],
)
async def test_the_loop_runs_small_writes_that_do_not_wait_for_the_disk(
    tmp_path: Path, settings: SqliteSettings, size: int | None, is_near: bool
):
    async with a_database(tmp_path, settings) as database:
        made_by = await database.write(thread, size=size)
        assert (made_by == threading.current_thread().name) is is_near


async def test_a_small_write_queues_behind_the_thread(tmp_path: Path):
    async with a_database(tmp_path) as database:
        large = asyncio.create_task(database.write(adding(1)))
        await settle(1)
        assert await database.write(thread, size=SMALL) == "recto-write"
        assert large.done()
        assert await database.write(thread, size=SMALL) == threading.current_thread().name


async def test_a_lock_of_another_process_does_not_block_the_loop(tmp_path: Path):
    async with a_database(tmp_path) as database:
        await database.write(adding(1), size=SMALL)
        with closing(sqlite3.connect(tmp_path / "recto.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waits = asyncio.create_task(database.write(adding(2), size=SMALL))
            # The loop continues: otherwise this would not end before the other.
            await settle()
            assert not waits.done()
            other.execute("COMMIT")
        await waits
        assert await database.read(numbers) == [1, 2]


async def test_the_thread_checkpoints_small_writes(tmp_path: Path):
    async with a_database(tmp_path) as database:
        file, log = tmp_path / "recto.db", 0
        for times in range(1, 7):
            await database.write(add_pages, size=SMALL)
            log = log or (tmp_path / "recto.db-wal").stat().st_size
            await wait_until(partial(is_as_large, file, times * ROWS * PAGE_PART), "the checkpoint")
        # Once all of it is copied, the log starts over.
        assert (tmp_path / "recto.db-wal").stat().st_size < 5 * log


@pytest.mark.full
async def test_the_write_ahead_log_stays_within_its_limit(tmp_path: Path):
    async with a_database(tmp_path) as database:
        await database.write(lambda connection: connection.execute(text("CREATE TABLE pages (data BLOB)")))
        data, log = bytes(60_000), tmp_path / "recto.db-wal"
        add = text("INSERT INTO pages VALUES (:data)")
        for _ in range(3_000):
            await database.write(lambda connection: connection.execute(add, {"data": data}), size=len(data))
        assert log.stat().st_size < 2 * MAX_LOG_BYTES


async def test_the_loop_reads_a_few_rows_in_one_snapshot(tmp_path: Path):
    async with a_database(tmp_path) as database:
        await database.write(adding(1), size=SMALL)
        assert await database.read(thread, few=True) == threading.current_thread().name
        assert await database.read(numbers, few=True) == [1]
        # Its changes are rolled back.
        await database.read(adding(2), few=True)
        assert await database.read(numbers, few=True) == [1]


def is_as_large(file: Path, size: int) -> bool:
    return file.stat().st_size >= size


def add_pages(connection: Connection) -> None:
    """Write as many rows as a checkpoint needs."""
    connection.execute(text("CREATE TABLE IF NOT EXISTS pages (data BLOB)"))
    connection.execute(text("INSERT INTO pages VALUES (:data)"), [{"data": bytes(PAGE_PART)}] * ROWS)
