"""Export of a user's data as JSON lines, and deletion of a user."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection, Table, delete, select

from recto.conversation.history import time_text
from recto.conversation.json import Json, dump, load
from recto.errors import NotFound
from recto.store import schema
from recto.store.database.database import Database, lock_thread
from recto.store.files import datasets, files
from recto.store.runs.calls import Calls
from recto.store.runs.spending import read_savings
from recto.store.threads.deletion import delete_rest, detach_threads
from recto.store.threads.thread_rows import StoppedRun

# Rows per query, and threads detached per write.
PAGE, THREADS_AT_ONCE = 20, 10
TIMES = frozenset({"created", "updated", "started", "ended", "time"})
BODIES = frozenset({"body", "input", "usage"})


class ExportTable(NamedTuple):
    """A table exported as lines of one kind, filtered by `filter` and ordered by `key`."""

    kind: str
    table: Table
    filter: str
    key: str
    names: tuple[str, ...]


PROFILE_TABLE = ExportTable("profile", schema.PROFILES, "owner", "owner", ("owner", "tier", "updated"))
FIELD_TABLE = ExportTable("profile_field", schema.PROFILE_FIELDS, "owner", "field", ("field", "body", "updated"))
SKILL_TABLE = ExportTable("skill_data", schema.SKILL_DATA, "owner", "skill", ("skill", "body", "updated"))
DAY_TABLE = ExportTable(
    "spending", schema.SPENDING, "owner", "day", ("day", "input", "output", "cached", "calls", "price")
)
ATTACHMENT_TABLE = ExportTable(
    "attachment", schema.ATTACHMENTS, "owner", "id", ("id", "name", "kind", "mime_type", "size", "created")
)
DATASET_TABLE = ExportTable(
    "dataset", schema.DATASETS, "owner", "id", ("id", "name", "description", "created", "updated")
)
THREAD_TABLE = ExportTable(
    "thread", schema.THREADS, "owner", "id", ("id", "title", "agent", "skill", "scenario", "created", "updated")
)
ENTRY_TABLE = ExportTable("entry", schema.LOG, "thread", "seq", ("thread", "seq", "id", "kind", "run", "time", "body"))
FILE_TABLE = ExportTable("file", schema.FILE_REFS, "thread", "id", ("thread", "id", "attachment", "body", "created"))
RUN_TABLE = ExportTable(
    "run",
    schema.RUNS,
    "thread",
    "id",
    (
        *("id", "name", "thread", "agent", "tier", "status", "outcome", "error"),
        *("created", "started", "ended", "input", "usage"),
    ),
)
# Omits `error`, because provider errors are for operators.
CALL_COLUMNS = ("number", "purpose", "model", "digest", "started", "ended", "finish", "usage", "price")
# Key before the first row: 0 for tables with numbers, else an empty text.
FIRST: Mapping[str, str | int] = {"entry": 0}


@dataclass(frozen=True, kw_only=True)
class DeletedUser:
    """Numbers of deleted rows of a user, and the runs that had not ended.

    `shares` counts other users' datasets that were shared with this user. `blobs` are the names to delete from the
    storage.
    """

    threads: int
    stopped: tuple[StoppedRun, ...]
    profiles: int
    days: int
    attachments: int = 0
    datasets: int = 0
    shares: int = 0
    blobs: tuple[str, ...] = ()


async def export_user(database: Database, owner: str) -> AsyncGenerator[bytes]:
    """Yield a user's data as JSON lines, each with its type: profile, days, uploads, datasets, then each thread.

    A day contains its savings. A thread is followed by its entries, files, runs and calls.
    """
    for table in (PROFILE_TABLE, FIELD_TABLE, SKILL_TABLE):
        async for row in _rows(database, table, owner):
            yield _encode_row(table, row)
    async for row in _rows(database, DAY_TABLE, owner):
        day = date.fromisoformat(str(row["day"]))
        savings = await database.read(partial(read_savings, owner=owner, since=day, until=day))
        yield _encode_row(DAY_TABLE, {**row, "savings": [asdict(saving) for saving in savings]})
    async for row in _rows(database, ATTACHMENT_TABLE, owner):
        yield _encode_row(ATTACHMENT_TABLE, row)
    async for row in _rows(database, DATASET_TABLE, owner):
        users = await database.read(partial(datasets.list_shares, id=str(row["id"])))
        yield _encode_row(DATASET_TABLE, {**row, "shared_with": users})
    async for thread in _rows(database, THREAD_TABLE, owner):
        yield _encode_row(THREAD_TABLE, thread)
        for table in (ENTRY_TABLE, FILE_TABLE):
            async for row in _rows(database, table, str(thread["id"])):
                yield _encode_row(table, row)
        async for run in _rows(database, RUN_TABLE, str(thread["id"])):
            yield _encode_row(RUN_TABLE, run)
            async for line in _export_calls(database, str(run["id"])):
                yield line


async def _export_calls(database: Database, run: str) -> AsyncGenerator[bytes]:
    """Yield the model calls of a run with their pages. Only one page is in memory at a time."""
    calls = Calls(database)
    for summary in await calls.list_summaries(run):
        try:
            call = await calls.read(run, summary.number)
        except NotFound:
            # The call was deleted during the export.
            return
        row = {name: _encode_value(name, getattr(summary, name)) for name in CALL_COLUMNS}
        yield dump({"type": "call", "run": run, **row, "page": _load_json(call.body) if call.body else None}) + b"\n"


async def _rows(database: Database, table: ExportTable, id: str) -> AsyncGenerator[Mapping[str, object]]:
    """Yield the rows of a user or a thread. Read one page of rows per transaction."""
    after: object = FIRST.get(table.kind, "")
    while rows := await database.read(partial(_read_rows, table=table, id=id, after=after)):
        for row in rows:
            yield row
        after = rows[-1][table.key]


def _read_rows(connection: Connection, table: ExportTable, id: str, after: object) -> Sequence[Mapping[str, object]]:
    columns, key = table.table.c, table.table.c[table.key]
    query = select(*[columns[name] for name in table.names]).where(columns[table.filter] == id, key > after)
    query = query.order_by(key).limit(PAGE)
    return [dict(zip(table.names, row, strict=True)) for row in connection.execute(query)]


def _encode_row(table: ExportTable, row: Mapping[str, object]) -> bytes:
    return dump({"type": table.kind, **{name: _encode_value(name, value) for name, value in row.items()}}) + b"\n"


def _encode_value(name: str, value: object) -> object:
    if isinstance(value, datetime):
        return time_text(value)
    if name in TIMES and isinstance(value, int):
        return time_text(schema.from_micros(value))
    return _load_json(value) if name in BODIES and isinstance(value, bytes) else value


def _load_json(body: bytes) -> Json:
    try:
        return load(body)
    except ValueError:
        # Recto did not write this value, so export it as text.
        return body.decode(errors="replace")


async def delete_user(database: Database, owner: str, today: date | None = None) -> DeletedUser:
    """Delete all data of a user except today's spending, which is needed for the daily limit.

    After an interruption, call this function again.
    """
    threads, stopped = 0, list[StoppedRun]()
    while batch := await database.write(partial(_detach_threads, owner=owner)):
        ids, runs = batch
        for id in ids:
            await delete_rest(database, id)
        threads, stopped = threads + len(ids), [*stopped, *runs]
    attachment_count, blobs = await files.delete_all(database, owner)
    dataset_count, shares = await database.write(partial(datasets.delete_all, owner=owner))
    profiles, days = await database.write(partial(_delete_rows, owner=owner, today=today))
    return DeletedUser(
        threads=threads,
        stopped=tuple(stopped),
        profiles=profiles,
        days=days,
        attachments=attachment_count,
        datasets=dataset_count,
        shares=shares,
        blobs=blobs,
    )


def _detach_threads(connection: Connection, owner: str) -> tuple[Sequence[str], Sequence[StoppedRun]] | None:
    threads = schema.THREADS.c
    query = select(threads.id).where(threads.owner == owner).order_by(threads.id).limit(THREADS_AT_ONCE)
    candidates = connection.execute(query).scalars().all()
    for id in candidates:
        lock_thread(connection, id)
    # Query again, because another user may have recreated a deleted thread while this transaction waited for the lock.
    ids = connection.execute(query.where(threads.id.in_(candidates))).scalars().all()
    return (ids, detach_threads(connection, ids)) if candidates else None


def _delete_rows(connection: Connection, owner: str, today: date | None) -> tuple[int, int]:
    profiles = connection.execute(delete(schema.PROFILES).where(schema.PROFILES.c.owner == owner)).rowcount
    connection.execute(delete(schema.SAVINGS).where(schema.SAVINGS.c.owner == owner))
    days = delete(schema.SPENDING).where(schema.SPENDING.c.owner == owner)
    if today is not None:
        days = days.where(schema.SPENDING.c.day != today.isoformat())
    return profiles, connection.execute(days).rowcount
