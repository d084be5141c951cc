"""SQLite: one writer at a time that commits many writes at once, a few reader threads, one write-ahead log.

Small writes are made on the event loop, all that come in one turn of it in one commit: to hand one to a thread and back
costs more than to write it. Others, and all while the thread is at work, go to the writer's thread. Its queue is
bounded: who comes when it is full is refused. Each write of a group has a savepoint and fails alone; a commit that
fails, fails them all, and none of it is stored.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Generic, cast

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from recto.config.run_settings import SqliteSettings
from recto.errors import Conflict, RectoError, SettingsError, StoreBusy, StoreDown
from recto.store.database.database import Result, Transaction
from recto.store.statement import driver as driver_of

LOGGER = logging.getLogger("recto.store")
CLOSED, BACKUP = "it is closed", "backup"
# About how far the write-ahead log may grow by what the loop writes before threads bring it into the database, which
# waits for the disk; and how far while they do: then the loop leaves writing to the thread until it is done. A changed
# row is a changed page, or part of one.
CHECKPOINT_BYTES, MOST_LOG_BYTES, PAGE_BYTES = 16 * 2**20, 64 * 2**20, 4_096
# Errors of a statement or its values. They say nothing of the database.
ASKED_WRONG = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)


class _Item(Generic[Result]):
    """A write that waits, and who waits for it."""

    def __init__(self, work: Transaction[Result], future: asyncio.Future[Result], size: int = 0) -> None:
        self.work = work
        self.size = size
        self.future = future
        self.result: Result | None = None
        self.error: BaseException | None = None

    def do(self, connection: Connection) -> None:
        """Run in a savepoint: what fails leaves nothing behind and spoils no other write."""
        driver = driver_of(connection)
        driver.execute("SAVEPOINT item")
        try:
            self.result = self.work(connection)
            driver.execute("RELEASE item")
        except Exception as error:
            self.error = error
            # A full disk ends the whole transaction by itself; then there is no savepoint to go back to.
            if driver.in_transaction:
                driver.execute("ROLLBACK TO item")
                driver.execute("RELEASE item")

    def settle(self) -> None:
        """Hand the outcome to the caller, unless they are gone."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(cast("Result", self.result))


class SqliteDatabase:
    """A database in one file, for one process."""

    def __init__(self, path: Path, settings: SqliteSettings | None = None) -> None:
        self._path = path
        self._settings = settings or SqliteSettings()
        self._engine = _engine(path, self._settings)
        # The loop's own connection, once there was something to write.
        self._here: Connection | None = None
        self._near: list[_Item[object]] = []
        # Writes that the thread has and has not answered: what comes later goes behind them.
        self._at_thread = 0
        # What the loop has written since the log was last brought into the database.
        self._log_bytes = self._changes = 0
        self._is_checkpointing = False
        self._queue: queue.Queue[_Item[object] | None] = queue.Queue(self._settings.waiting)
        self._readers = ThreadPoolExecutor(self._settings.readers, thread_name_prefix="recto-read")
        self._loop = asyncio.get_running_loop()
        self._problem: str | None = None
        self._is_closing = False
        # Set before the queue is emptied for the last time, so whoever comes too late for that sees it.
        self._stopped: str | None = None
        self._writer = threading.Thread(target=self._write_groups, name="recto-write", daemon=True)
        self._writer.start()

    @property
    def problem(self) -> str | None:
        """Why writes fail at present."""
        if self._queue.full():
            return "too many writes are waiting"
        return self._stopped or self._problem

    @property
    def is_shared(self) -> bool:
        """It is one process's own."""
        return False

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:
        """Run work in the next group. Returns once it is committed."""
        item = _Item(work, self._loop.create_future(), size or 0)
        is_held_up = self._at_thread or self._stopped is not None or self._log_bytes > MOST_LOG_BYTES
        if size is None or size >= self._near_bytes or is_held_up:
            self._hand_over(cast("_Item[object]", item))
        else:
            self._near.append(cast("_Item[object]", item))
            if len(self._near) == 1:
                # Whoever writes in the same turn of the loop comes along.
                self._loop.call_soon(self._write_near)
        return await item.future

    @property
    def _near_bytes(self) -> int:
        # Where a commit waits for the disk, it is the thread that waits.
        return self._settings.near_bytes if self._settings.synchronous == "NORMAL" else 0

    def _hand_over(self, item: _Item[object]) -> None:
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            raise StoreBusy(waiting=self._queue.qsize()) from None
        self._at_thread += 1
        if self._stopped is not None:
            self._refuse_waiting(self._stopped)

    def _write_near(self) -> None:
        items, self._near = self._near, []
        try:
            here = self._here = self._here or _connect_here(self._engine)
            driver = driver_of(here)
            driver.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, DBAPIError):
            # Another process writes, or something is wrong: the thread can wait for that, and says what it is.
            self._hand_over_all(items)
            return
        try:
            self._write_group(here, items)
        except BaseException as error:
            self._stop(items, error)
        else:
            _settle_all(items)
        self._log_bytes += (driver.total_changes - self._changes) * PAGE_BYTES + sum([item.size for item in items])
        self._changes = driver.total_changes
        if self._log_bytes >= CHECKPOINT_BYTES and not self._is_checkpointing and self._stopped is None:
            self._is_checkpointing = True
            # Most of it while others write on; then the rest, which only comes to an end while nobody writes.
            copying = self._loop.run_in_executor(self._readers, self._copy_pages)
            copying.add_done_callback(self._finish_checkpoint)

    def _copy_pages(self) -> None:
        with self._engine.connect() as connection:
            driver_of(connection).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _finish_checkpoint(self, copying: asyncio.Future[None]) -> None:
        if not copying.cancelled() and (error := copying.exception()):
            LOGGER.warning("the write-ahead log cannot be brought into the database: %s", _text_of(error))
        # The second write begins the log anew, which waits for the disk as well.
        self._have_thread_write(lambda: self._have_thread_write(self._end_checkpoint))

    def _have_thread_write(self, then: Callable[[], None]) -> None:
        def done(written: asyncio.Future[None]) -> None:
            # What stands in its way stands in the way of others too, who are told.
            if not written.cancelled():
                written.exception()
            then()

        item = _Item(_write_something, self._loop.create_future())
        item.future.add_done_callback(done)
        self._hand_over_all([cast("_Item[object]", item)])

    def _end_checkpoint(self) -> None:
        self._log_bytes, self._is_checkpointing = 0, False

    def _hand_over_all(self, items: Sequence[_Item[object]]) -> None:
        for item in items:
            try:
                self._hand_over(item)
            except StoreBusy as busy:
                item.error = busy
                item.settle()

    async def write_first(self, work: Transaction[Result]) -> Result:
        """Run work in the next group: so many go into each that nothing waits for long."""
        return await self.write(work)

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:
        """Run work on a reader's connection, or here: all it asks is answered as of one moment."""
        if self._is_closing:
            raise StoreDown(problem=CLOSED)
        if few and self._here:
            with _told_of_faults():
                return _read(self._here, work)
        return await self._loop.run_in_executor(self._readers, self._read, work)

    def _read(self, work: Transaction[Result]) -> Result:
        with _told_of_faults(), self._engine.connect() as connection:
            return _read(connection, work)

    def forget(self) -> None:
        """Keep no compiled statement."""
        self._engine.clear_compiled_cache()

    async def close(self) -> None:
        """Commit what waits, then close."""
        await asyncio.to_thread(self._queue.put, None)
        await asyncio.to_thread(self._writer.join)
        self._is_closing = True
        await asyncio.to_thread(self._readers.shutdown)
        if self._here:
            self._here.close()
        self._engine.dispose()

    def _write_groups(self) -> None:
        items = list[_Item[object]]()
        try:
            with self._engine.connect() as connection:
                while items := self._next_group():
                    self._write_group(connection, items)
                    self._settle(items)
        except BaseException as error:
            self._stop(items, error)
        else:
            self._stopped = CLOSED
            self._refuse_waiting(CLOSED)

    def _stop(self, items: Sequence[_Item[object]], error: BaseException) -> None:
        """Nobody else would hear of it, and whoever waits would wait for ever."""
        self._stopped = f"its writer has stopped: {_text_of(error)}"
        LOGGER.critical("the database's writer has stopped", exc_info=error)
        self._refuse(items, self._stopped)
        self._refuse_waiting(self._stopped)

    def _next_group(self) -> list[_Item[object]]:
        items: list[_Item[object]] = []
        while len(items) < self._settings.group and not self._is_closing:
            try:
                item = self._queue.get(block=not items)
            except queue.Empty:
                break
            if item is None:
                self._is_closing = True
            else:
                items.append(item)
        return items

    def _write_group(self, connection: Connection, items: Sequence[_Item[object]]) -> None:
        driver = driver_of(connection)
        problem: BaseException | None = None
        try:
            if not driver.in_transaction:
                driver.execute("BEGIN IMMEDIATE")
            for item in items:
                item.do(connection)
                if item.error and not driver.in_transaction:
                    raise item.error
            driver.execute("COMMIT")
        except BaseException as error:
            if driver.in_transaction:
                driver.execute("ROLLBACK")
            # SQLAlchemy may still count savepoints that went with the transaction.
            connection.rollback()
            if not _is_broken(error):
                raise
            problem = error
        self._problem = _text_of(problem) if problem else _first_problem(items)
        for item in items:
            error = problem or item.error
            item.error = _as_ours(error) if error else None

    def _refuse_waiting(self, problem: str) -> None:
        waiting: list[_Item[object]] = []
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            waiting += [item] if item else []
        self._refuse(waiting, problem)

    def _refuse(self, items: Sequence[_Item[object]], problem: str) -> None:
        for item in items:
            item.error = StoreDown(problem=problem)
        self._settle(items)

    def _settle(self, items: Sequence[_Item[object]]) -> None:
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take_back, items)

    def _take_back(self, items: Sequence[_Item[object]]) -> None:
        self._at_thread -= len(items)
        _settle_all(items)


@contextmanager
def _told_of_faults() -> Generator[None]:
    """A database that fails is told in our words; what it was asked wrong, in its own."""
    try:
        yield
    except (sqlite3.Error, DBAPIError) as error:
        if not _is_broken(error):
            raise
        raise StoreDown(problem=_text_of(error)) from error


def _read(connection: Connection, work: Transaction[Result]) -> Result:
    driver = driver_of(connection)
    driver.execute("BEGIN")
    try:
        return work(connection)
    finally:
        driver.rollback()


def _settle_all(items: Sequence[_Item[object]]) -> None:
    for item in items:
        item.settle()


def _first_problem(items: Sequence[_Item[object]]) -> str | None:
    return next((_text_of(item.error) for item in items if item.error and _is_broken(item.error)), None)


def _is_broken(error: BaseException) -> bool:
    """Whether it is the database that failed, not what it was asked."""
    driver = _driver_error(error)
    return isinstance(driver, sqlite3.Error) and not isinstance(driver, ASKED_WRONG)


def _as_ours(error: BaseException) -> BaseException:
    if isinstance(_driver_error(error), sqlite3.IntegrityError):
        ours: RectoError = Conflict(f"What is stored already stands against it: {_text_of(error)}.")
    elif _is_broken(error):
        ours = StoreDown(problem=_text_of(error))
    else:
        return error
    ours.__cause__ = error
    return ours


def _driver_error(error: BaseException) -> BaseException | None:
    return error.orig if isinstance(error, DBAPIError) else error


def _text_of(error: BaseException) -> str:
    # Without the statement and its values, which SQLAlchemy's own text has.
    return str(_driver_error(error)) or repr(error)


def _engine(path: Path, settings: SqliteSettings) -> Engine:
    engine = create_engine(
        # Not as text: a path may hold what means something in a url.
        URL.create("sqlite", database=str(path)),
        # What people said does not belong into errors and logs.
        hide_parameters=True,
        poolclass=QueuePool,
        pool_size=settings.readers + 2,
        max_overflow=0,
        # Transactions are ours to begin: the driver's own habit of beginning late would let two writes meet.
        connect_args={"check_same_thread": False, "isolation_level": None, "timeout": 30},
        skip_autocommit_rollback=True,
        isolation_level="AUTOCOMMIT",
    )
    event.listen(engine, "connect", _pragmas(settings))
    return engine


def _pragmas(settings: SqliteSettings) -> Callable[[sqlite3.Connection, PoolProxiedConnection], None]:
    def set_pragmas(driver: sqlite3.Connection, _record: PoolProxiedConnection) -> None:
        driver.execute("PRAGMA journal_mode=WAL")
        driver.execute(f"PRAGMA synchronous={settings.synchronous}")
        driver.execute("PRAGMA foreign_keys=ON")
        driver.execute("PRAGMA temp_store=MEMORY")
        # A log that had to grow is cut when it begins anew.
        driver.execute(f"PRAGMA journal_size_limit={MOST_LOG_BYTES}")
        # What SQLite knows of upper and lower case ends with ASCII.
        driver.create_function("recto_fold", 1, _fold, deterministic=True)

    return set_pragmas


def _connect_here(engine: Engine) -> Connection:
    connection = engine.connect()
    # The loop does not wait for whoever locks the database, nor brings the log into it, which waits for the disk.
    driver_of(connection).execute("PRAGMA busy_timeout=0")
    driver_of(connection).execute("PRAGMA wal_autocheckpoint=0")
    return connection


def _write_something(connection: Connection) -> None:
    """Write what changes nothing: a commit of the thread's checkpoints, if there is enough for that."""
    driver_of(connection).execute("PRAGMA user_version=0")


def _fold(text: str | None) -> str | None:
    return text.casefold() if text is not None else None


def backup_file(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment. Writers go on meanwhile; there is a target only once it is whole."""
    if target.exists():
        raise SettingsError(name=BACKUP, value=str(target), allowed="there is such a file already. Name a new one")
    draft = target.with_name(f"{target.name}.part")
    draft.unlink(missing_ok=True)
    try:
        # Only what is there: opening must not make an empty database to copy.
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, timeout=30)) as connection:
            connection.execute("VACUUM INTO ?", (str(draft),))
        draft.rename(target)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise StoreDown(problem=f"it could not be copied to {target}: {error}") from error
