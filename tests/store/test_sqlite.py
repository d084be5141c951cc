"""The store on SQLite: the common tests, and those of groups, checkpoints and files."""

import asyncio
import resource
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from recto.config.run_settings import SqliteSettings, Synchronous
from recto.errors import Conflict, StoreBusy, StoreDown
from recto.store.database.sqlite import SqliteDatabase
from recto.store.store import Store, open_store
from tests.store.suite import StoreSuite
from tests.store.suite.samples import at, begin, events, events_of
from tests.store.suite.threads import list_threads
from tests.waiting import settle

MEGABYTE = 1 << 20
# Far longer than anything here takes: it ends a test that would otherwise hang.
PATIENCE = 20

WRITER = """
import asyncio, sys
from recto.store.store import open_store
from tests.store.suite.samples import at, begin, events

async def write(store, lease):
    while True:
        written = await store.runs.record(lease, events(b"x" * 500, b"y"), at(1))
        print(lease.run, written.last_event, flush=True)

async def main():
    store = await open_store(sys.argv[1])
    leases = [await begin(store, f"r{number}", f"thread-{number}") for number in range(4)]
    await asyncio.gather(*(write(store, lease) for lease in leases))

asyncio.run(main())
"""


class TestSqliteStore(StoreSuite):
    """The common tests, on a file."""


async def test_writes_that_wait_together_are_committed_together(tmp_path: Path):
    database = await numbers_in(tmp_path, SqliteSettings(group=50))
    async with paused(database):
        waiting = [asyncio.create_task(database.write(adding(number))) for number in range(200)]
        await settle(1)
        before = commits(tmp_path)
    await asyncio.gather(*waiting)
    assert commits(tmp_path) - before == 4
    assert await database.read(numbers) == [*range(200)]
    await database.close()


async def test_a_write_that_fails_fails_alone_and_leaves_nothing(tmp_path: Path):
    database = await numbers_in(tmp_path)
    async with paused(database):
        works = [adding(1), adding(2, then=fail), adding(1), adding(3)]
        waiting = [asyncio.create_task(database.write(work)) for work in works]
        await settle(1)
        before = commits(tmp_path)
    first, failed, doubled, last = await asyncio.gather(*waiting, return_exceptions=True)
    assert (first, last) == (None, None)
    assert isinstance(failed, ZeroDivisionError)
    assert isinstance(doubled, Conflict)
    assert await database.read(numbers) == [1, 3]
    assert commits(tmp_path) - before == 1
    assert database.problem is None
    await database.close()


async def test_a_write_is_rejected_while_the_queue_is_full(tmp_path: Path):
    database = await numbers_in(tmp_path, SqliteSettings(waiting=3))
    async with paused(database):
        waiting = [asyncio.create_task(database.write(adding(number))) for number in range(3)]
        await settle(1)
        with pytest.raises(StoreBusy, match="3 writes"):
            await database.write(adding(9))
        assert database.problem == "too many writes are waiting"
    await asyncio.gather(*waiting)
    assert database.problem is None
    assert await database.read(numbers) == [0, 1, 2]
    await database.close()


async def test_a_cancelled_write_does_not_affect_other_writes(tmp_path: Path):
    database = await numbers_in(tmp_path)
    async with paused(database):
        removed = asyncio.create_task(database.write(adding(1)))
        stays = asyncio.create_task(database.write(adding(2)))
        await settle(1)
        removed.cancel()
    await stays
    assert removed.cancelled()
    # It was queued already and is stored completely.
    assert await database.read(numbers) == [1, 2]
    await database.close()


async def test_closing_commits_pending_writes(tmp_path: Path):
    database = await numbers_in(tmp_path, SqliteSettings(group=7, waiting=20))
    async with paused(database):
        waiting = [asyncio.create_task(database.write(adding(number))) for number in range(20)]
        closes = asyncio.create_task(database.close())
        await settle()
    async with asyncio.timeout(PATIENCE):
        await closes
        await asyncio.gather(*waiting)
    database = SqliteDatabase(tmp_path / "recto.db")
    assert await database.read(numbers) == [*range(20)]
    await database.close()


async def test_a_closed_database_rejects_reads_and_writes(tmp_path: Path):
    database = await numbers_in(tmp_path)
    await database.close()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreDown, match="closed"):
            await database.write(adding(1))
        with pytest.raises(StoreDown, match="closed"):
            await database.read(numbers)
        await database.close()
    assert database.problem == "it is closed"


async def test_a_dead_writer_fails_all_writes_and_reports_a_problem(tmp_path: Path):
    database = await numbers_in(tmp_path, SqliteSettings(group=2))
    await database.write(adding(0))
    async with paused(database):
        works = [adding(1), adding(2, then=exit_thread), adding(3), adding(4)]
        waiting = [asyncio.create_task(database.write(work)) for work in works]
        await settle(1)
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(StoreDown, match="its writer has stopped: out"):
            await database.write(adding(5))
    assert [type(one) for one in results] == [StoreDown] * 4
    assert database.problem == "its writer has stopped: out"
    assert await database.read(numbers) == [0]
    await database.close()


async def test_an_unusable_file_is_an_error(tmp_path: Path):
    (tmp_path / "recto.db").write_bytes(b"Dear diary, " * 1000)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreDown, match="not a database"):
            await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
        with pytest.raises(StoreDown, match="unable to open database file"):
            await open_store(f"sqlite:///{tmp_path / 'missing' / 'recto.db'}")


@pytest.mark.parametrize(("setting", "number"), [("NORMAL", 1), ("FULL", 2)])
async def test_every_connection_has_the_configured_settings(tmp_path: Path, setting: Synchronous, number: int):
    database = await numbers_in(tmp_path, SqliteSettings(synchronous=setting))
    names = ("synchronous", "journal_mode", "foreign_keys")

    def pragmas(connection: Connection) -> list[object]:
        return [connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in names]

    assert await database.write(pragmas) == [number, "wal", 1]
    assert await database.read(pragmas) == [number, "wal", 1]
    await database.close()


@pytest.mark.parametrize("name", ["what?", "a?mode=memory", "50%", "#1", "a b&c=d"])
async def test_C3_a_path_may_contain_any_characters(tmp_path: Path, name: str):
    folder = tmp_path / name
    folder.mkdir()
    store = await open_store(f"sqlite:///{folder / 'recto.db'}")
    await store.probe()
    await store.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (folder / "recto.db").stat().st_size > 0


def test_acknowledged_writes_survive_a_kill(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'recto.db'}"
    acknowledged: dict[str, int] = {}
    with subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for count, line in enumerate(writer.stdout):
            # The kill may truncate the last line, which then acknowledges nothing.
            if line.endswith("\n"):
                run, number = line.split()
                acknowledged[run] = int(number)
            if count == 400:
                writer.kill()
    with closing(sqlite3.connect(tmp_path / "recto.db")) as driver:
        assert driver.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = driver.execute("SELECT run, COUNT(*), MAX(number) FROM events GROUP BY run").fetchall()
        counts = dict(driver.execute("SELECT id, last_event FROM runs").fetchall())
    assert len(acknowledged) == 4
    assert all(count == highest == counts[run] for run, count, highest in rows)
    assert all(counts[run] >= number for run, number in acknowledged.items())


async def test_a_full_disk_fails_writes_until_there_is_room_again(tmp_path: Path):
    store = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    lease = await begin(store, "r1")
    with files_of_at_most(MEGABYTE):
        with pytest.raises(StoreDown, match=r"disk is full|disk I/O error"):
            for _ in range(100):
                await store.runs.record(lease, events(b"x" * 50_000), at(1))
        assert store.problem is not None
        with pytest.raises(StoreDown):
            await store.runs.record(lease, events(b"y" * MEGABYTE), at(2))
        rest = [body for _, body in await events_of(store, lease.run)]
        assert rest == [b"x" * 50_000] * len(rest)
        assert rest
    result = await store.runs.record(lease, events(b"after"), at(3))
    assert result.last_event == len(rest) + 1
    assert store.problem is None
    assert [body for _, body in await events_of(store, lease.run)] == [*rest, b"after"]
    await store.close()
    with closing(sqlite3.connect(tmp_path / "recto.db")) as driver:
        assert driver.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_P17_title_search_ignores_case_in_any_script(store: Store):
    # SQLite itself folds the case of ASCII only.
    await begin(store, "r1")
    await store.threads.rename("ann", "thread-1", "Äpfel Straße ПРИВЕТ οδός")
    for search in ("ÄPFEL", "äpfel", "Äpf", "STRASSE", "привет", "ΟΔΌΣ"):
        assert await list_threads(store, search=search) == ["thread-1"]


async def numbers_in(folder: Path, settings: SqliteSettings | None = None) -> SqliteDatabase:
    database = SqliteDatabase(folder / "recto.db", settings)
    await database.write(lambda connection: connection.execute(text("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")))
    return database


@asynccontextmanager
async def paused(database: SqliteDatabase) -> AsyncGenerator[None]:
    """Hold the writer in the middle of a write, so that others queue behind it, until the block ends."""
    started, goes_on, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def hold(_connection: Connection) -> None:
        loop.call_soon_threadsafe(started.set)
        goes_on.wait(PATIENCE)

    holding = asyncio.create_task(database.write(hold))
    await started.wait()
    try:
        yield
    finally:
        goes_on.set()
    await holding


def adding(number: int, then: Callable[[], None] = lambda: None) -> Callable[[Connection], None]:
    def add(connection: Connection) -> None:
        connection.execute(text("INSERT INTO numbers VALUES (:n)"), {"n": number})
        then()

    return add


def fail() -> None:
    raise ZeroDivisionError


def exit_thread() -> None:
    raise SystemExit("out")


def numbers(connection: Connection) -> list[int]:
    return [row[0] for row in connection.execute(text("SELECT n FROM numbers ORDER BY n"))]


def commits(folder: Path) -> int:
    """Return the number of commits in the write-ahead log: a frame that ends one contains the size of the database."""
    log = (folder / "recto.db-wal").read_bytes()
    page_size, salts = struct.unpack(">I", log[8:12])[0], log[16:24]
    frames = [log[at : at + 24] for at in range(32, len(log), 24 + page_size)]
    return sum(frame[8:16] == salts and frame[4:8] != bytes(4) for frame in frames)


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Let no file grow, like a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
