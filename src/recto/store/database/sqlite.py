"""SQLite with one writer, group commits, a few reader threads and a write-ahead log.

Small writes run on the event loop, with one commit for all writes of a loop turn, because handing a write to a thread
costs more than the write. Other writes go to the writer thread. While that thread is busy, all writes go there. Its
queue is bounded; a full queue rejects writes. Each write of a group has a savepoint and fails alone. If the commit
fails, all writes of the group fail and nothing is stored.
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
from recto.store.statement import get_driver

LOGGER = logging.getLogger("recto.store")
CLOSED, BACKUP = "it is closed", "backup"
# Write-ahead log size at which threads start a checkpoint (which waits for the disk), and the size at which the loop
# leaves all writes to the thread until the checkpoint is done. A changed row counts as a changed page.
CHECKPOINT_BYTES, MAX_LOG_BYTES, PAGE_BYTES = 16 * 2**20, 64 * 2**20, 4_096
# Errors of a statement or its values, not of the database.
STATEMENT_ERRORS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)


class _PendingWrite(Generic[Result]):
    """A pending write and the future of its caller."""

    def __init__(self, work: Transaction[Result], future: asyncio.Future[Result], size: int = 0) -> None:
        self.work = work
        self.size = size
        self.future = future
        self.result: Result | None = None
        self.error: BaseException | None = None

    def run(self, connection: Connection) -> None:
        """Run the work in a savepoint, so that a failure stores nothing and does not affect other writes."""
        driver = get_driver(connection)
        driver.execute("SAVEPOINT item")
        try:
            self.result = self.work(connection)
            driver.execute("RELEASE item")
        except Exception as error:
            self.error = error
            # A full disk ends the whole transaction, including the savepoint.
            if driver.in_transaction:
                driver.execute("ROLLBACK TO item")
                driver.execute("RELEASE item")

    def settle(self) -> None:
        """Resolve the caller's future, unless the caller is gone."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(cast("Result", self.result))


class SqliteDatabase:
    """A database in one file, used by one process."""

    def __init__(self, path: Path, settings: SqliteSettings | None = None) -> None:
        self._settings = settings or SqliteSettings()
        # A synchronous commit waits for the disk, so the writer thread must commit instead of the loop.
        self._max_loop_bytes = self._settings.near_bytes if self._settings.synchronous == "NORMAL" else 0
        self._engine = _create_engine(path, self._settings)
        # The connection of the event loop, opened by the first small write.
        self._loop_connection: Connection | None = None
        self._loop_writes: list[_PendingWrite[object]] = []
        # Writes in flight on the writer thread. New writes queue behind them to keep order.
        self._thread_writes = 0
        # Bytes that the loop has written since the last checkpoint.
        self._log_bytes = self._changes = 0
        self._is_checkpointing = False
        self._queue: queue.Queue[_PendingWrite[object] | None] = queue.Queue(self._settings.waiting)
        self._readers = ThreadPoolExecutor(self._settings.readers, thread_name_prefix="recto-read")
        self._loop = asyncio.get_running_loop()
        self._problem: str | None = None
        self._is_closing = False
        # Reason why writing stopped. Set before the queue is drained for the last time, so that a later write sees it.
        self._stopped: str | None = None
        self._writer = threading.Thread(target=self._write_groups, name="recto-write", daemon=True)
        self._writer.start()

    @property
    def problem(self) -> str | None:
        """Reason why writes fail; None while they succeed."""
        if self._queue.full():
            return "too many writes are waiting"
        return self._stopped or self._problem

    @property
    def is_shared(self) -> bool:
        """False: one process owns the file."""
        return False

    async def write(self, work: Transaction[Result], *, size: int | None = None) -> Result:
        """Run work in the next group and return after its commit."""
        item = _PendingWrite(work, self._loop.create_future(), size or 0)
        must_queue = self._thread_writes or self._stopped is not None or self._log_bytes > MAX_LOG_BYTES
        if size is None or size >= self._max_loop_bytes or must_queue:
            self._enqueue(cast("_PendingWrite[object]", item))
        else:
            self._loop_writes.append(cast("_PendingWrite[object]", item))
            if len(self._loop_writes) == 1:
                # Writes of the same loop turn join this commit.
                self._loop.call_soon(self._write_on_loop)
        return await item.future

    def _enqueue(self, item: _PendingWrite[object]) -> None:
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            raise StoreBusy(waiting=self._queue.qsize()) from None
        self._thread_writes += 1
        if self._stopped is not None:
            self._fail_queue(self._stopped)

    def _write_on_loop(self) -> None:
        items, self._loop_writes = self._loop_writes, []
        try:
            connection = self._loop_connection = self._loop_connection or _connect_loop(self._engine)
            driver = get_driver(connection)
            driver.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, DBAPIError):
            # Another process is writing, or the database is broken. The thread can wait, and reports the cause.
            self._enqueue_all(items)
            return
        try:
            self._write_group(connection, items)
        except BaseException as error:
            self._stop(items, error)
        else:
            _settle_all(items)
        self._log_bytes += (driver.total_changes - self._changes) * PAGE_BYTES + sum([item.size for item in items])
        self._changes = driver.total_changes
        if self._log_bytes >= CHECKPOINT_BYTES and not self._is_checkpointing and self._stopped is None:
            self._start_checkpoint()

    def _start_checkpoint(self) -> None:
        self._is_checkpointing = True

        def copy_pages() -> None:
            with self._engine.connect() as connection:
                get_driver(connection).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

        def finish(copy: asyncio.Future[None]) -> None:
            if not copy.cancelled() and (error := copy.exception()):
                LOGGER.warning("the checkpoint of the write-ahead log failed: %s", _error_text(error))
            # The second write restarts the log, which also waits for the disk.
            self._write_no_op(lambda: self._write_no_op(end))

        def end() -> None:
            self._log_bytes, self._is_checkpointing = 0, False

        # Copy most pages while others write. The last pages can only be copied while nobody writes.
        self._loop.run_in_executor(self._readers, copy_pages).add_done_callback(finish)

    def _write_no_op(self, callback: Callable[[], None]) -> None:
        def write_nothing(connection: Connection) -> None:
            # The commit runs the thread's checkpoint if one is due.
            get_driver(connection).execute("PRAGMA user_version=0")

        def finish(write: asyncio.Future[None]) -> None:
            # Ignore the error, because the same cause fails other writes, whose callers get it.
            if not write.cancelled():
                write.exception()
            callback()

        item = _PendingWrite(write_nothing, self._loop.create_future())
        item.future.add_done_callback(finish)
        self._enqueue_all([cast("_PendingWrite[object]", item)])

    def _enqueue_all(self, items: Sequence[_PendingWrite[object]]) -> None:
        for item in items:
            try:
                self._enqueue(item)
            except StoreBusy as busy:
                item.error = busy
                item.settle()

    async def write_first(self, work: Transaction[Result]) -> Result:
        """Run work in the next group. Groups are large, so no write waits long."""
        return await self.write(work)

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:
        """Run work with one snapshot, on a reader's connection or on the connection of the loop."""
        if self._is_closing:
            raise StoreDown(problem=CLOSED)
        if few and self._loop_connection:
            with _map_errors():
                return _read(self._loop_connection, work)
        return await self._loop.run_in_executor(self._readers, self._read, work)

    def _read(self, work: Transaction[Result]) -> Result:
        with _map_errors(), self._engine.connect() as connection:
            return _read(connection, work)

    def forget(self) -> None:
        """Drop compiled statements."""
        self._engine.clear_compiled_cache()

    async def close(self) -> None:
        """Commit pending writes, then close."""
        await asyncio.to_thread(self._queue.put, None)
        await asyncio.to_thread(self._writer.join)
        self._is_closing = True
        await asyncio.to_thread(self._readers.shutdown)
        if self._loop_connection:
            self._loop_connection.close()
        self._engine.dispose()

    def _write_groups(self) -> None:
        items = list[_PendingWrite[object]]()
        try:
            with self._engine.connect() as connection:
                while items := self._next_group():
                    self._write_group(connection, items)
                    self._settle(items)
        except BaseException as error:
            self._stop(items, error)
        else:
            self._stopped = CLOSED
            self._fail_queue(CLOSED)

    def _stop(self, items: Sequence[_PendingWrite[object]], error: BaseException) -> None:
        """Fail all pending writes; their callers would otherwise wait forever."""
        self._stopped = f"its writer has stopped: {_error_text(error)}"
        LOGGER.critical("the database's writer has stopped", exc_info=error)
        self._fail(items, self._stopped)
        self._fail_queue(self._stopped)

    def _next_group(self) -> list[_PendingWrite[object]]:
        items: list[_PendingWrite[object]] = []
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

    def _write_group(self, connection: Connection, items: Sequence[_PendingWrite[object]]) -> None:
        driver = get_driver(connection)
        problem: BaseException | None = None
        try:
            if not driver.in_transaction:
                driver.execute("BEGIN IMMEDIATE")
            for item in items:
                item.run(connection)
                if item.error and not driver.in_transaction:
                    raise item.error
            driver.execute("COMMIT")
        except BaseException as error:
            if driver.in_transaction:
                driver.execute("ROLLBACK")
            # Reset SQLAlchemy too, which may still count savepoints of the ended transaction.
            connection.rollback()
            if not _is_failure(error):
                raise
            problem = error
        failures = [item.error for item in items if item.error and _is_failure(item.error)]
        self._problem = _error_text(problem or failures[0]) if problem or failures else None
        for item in items:
            error = problem or item.error
            item.error = _map_error(error) if error else None

    def _fail_queue(self, problem: str) -> None:
        items: list[_PendingWrite[object]] = []
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            items += [item] if item else []
        self._fail(items, problem)

    def _fail(self, items: Sequence[_PendingWrite[object]], problem: str) -> None:
        for item in items:
            item.error = StoreDown(problem=problem)
        self._settle(items)

    def _settle(self, items: Sequence[_PendingWrite[object]]) -> None:
        def settle() -> None:
            self._thread_writes -= len(items)
            _settle_all(items)

        # If the loop is closed, no callers are waiting.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle)


@contextmanager
def _map_errors() -> Generator[None]:
    """Convert a database failure to StoreDown. Errors of the statement pass through."""
    try:
        yield
    except (sqlite3.Error, DBAPIError) as error:
        if not _is_failure(error):
            raise
        raise StoreDown(problem=_error_text(error)) from error


def _read(connection: Connection, work: Transaction[Result]) -> Result:
    driver = get_driver(connection)
    driver.execute("BEGIN")
    try:
        return work(connection)
    finally:
        driver.rollback()


def _settle_all(items: Sequence[_PendingWrite[object]]) -> None:
    for item in items:
        item.settle()


def _is_failure(error: BaseException) -> bool:
    """Return True if the database failed, not the statement."""
    driver = _driver_error(error)
    return isinstance(driver, sqlite3.Error) and not isinstance(driver, STATEMENT_ERRORS)


def _map_error(error: BaseException) -> BaseException:
    if isinstance(_driver_error(error), sqlite3.IntegrityError):
        mapped: RectoError = Conflict(f"Stored rows conflict with this change: {_error_text(error)}.")
    elif _is_failure(error):
        mapped = StoreDown(problem=_error_text(error))
    else:
        return error
    mapped.__cause__ = error
    return mapped


def _driver_error(error: BaseException) -> BaseException | None:
    return error.orig if isinstance(error, DBAPIError) else error


def _error_text(error: BaseException) -> str:
    # Omit the statement and its values, which the text of SQLAlchemy's error contains.
    return str(_driver_error(error)) or repr(error)


def _create_engine(path: Path, settings: SqliteSettings) -> Engine:
    engine = create_engine(
        # Build the URL from parts, because a path may contain characters with a meaning in URLs.
        URL.create("sqlite", database=str(path)),
        # Keep user content out of errors and logs.
        hide_parameters=True,
        poolclass=QueuePool,
        pool_size=settings.readers + 2,
        max_overflow=0,
        # This module begins transactions itself. The driver would begin them late, so that two writes could conflict.
        connect_args={"check_same_thread": False, "isolation_level": None, "timeout": 30},
        skip_autocommit_rollback=True,
        isolation_level="AUTOCOMMIT",
    )

    def set_pragmas(driver: sqlite3.Connection, _record: PoolProxiedConnection) -> None:
        driver.execute("PRAGMA journal_mode=WAL")
        driver.execute(f"PRAGMA synchronous={settings.synchronous}")
        driver.execute("PRAGMA foreign_keys=ON")
        driver.execute("PRAGMA temp_store=MEMORY")
        # Truncate the log to this size when it restarts, in case it had to grow.
        driver.execute(f"PRAGMA journal_size_limit={MAX_LOG_BYTES}")
        # SQLite's own functions fold the case of ASCII only.
        driver.create_function("recto_fold", 1, _fold, deterministic=True)

    event.listen(engine, "connect", set_pragmas)
    return engine


def _connect_loop(engine: Engine) -> Connection:
    connection = engine.connect()
    # The loop must not wait for locks. It must not run checkpoints either, because they wait for the disk.
    get_driver(connection).execute("PRAGMA busy_timeout=0")
    get_driver(connection).execute("PRAGMA wal_autocheckpoint=0")
    return connection


def _fold(text: str | None) -> str | None:
    return text.casefold() if text is not None else None


def backup_file(source: Path, target: Path) -> None:
    """Copy a database as of one moment while writers continue. Create the target only when the copy is complete."""
    if target.exists():
        raise SettingsError(name=BACKUP, value=str(target), allowed="this file exists. Choose a new one")
    draft = target.with_name(f"{target.name}.part")
    draft.unlink(missing_ok=True)
    try:
        # mode=rw: opening must not create an empty database.
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, timeout=30)) as connection:
            connection.execute("VACUUM INTO ?", (str(draft),))
        draft.rename(target)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise StoreDown(problem=f"it could not be copied to {target}: {error}") from error
