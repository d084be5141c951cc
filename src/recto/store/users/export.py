"""Export of a user's data as JSON lines, and deletion of a user."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from functools import partial

from sqlalchemy import Column, Connection, delete, select

from recto.conversation.history import time_text
from recto.conversation.json import Json, dump, load
from recto.errors import NotFound
from recto.store.database.database import Database, lock_thread
from recto.store.files import datasets, files
from recto.store.runs.calls import list_summaries, read_call
from recto.store.runs.daily_savings import saved
from recto.store.schema import (
    ATTACHMENTS,
    DATASETS,
    FILE_REFS,
    LOG,
    PROFILE_FIELDS,
    PROFILES,
    RUNS,
    SAVINGS,
    SKILL_DATA,
    SPENDING,
    THREADS,
    from_micros,
)
from recto.store.threads.deleting import delete_rest, detach_threads
from recto.store.threads.thread_rows import StoppedRun

# Rows per query, and threads detached per write.
PAGE, TOGETHER = 20, 10
TIMES = frozenset({"created", "updated", "started", "ended", "time"})
BODIES = frozenset({"body", "input", "usage"})


@dataclass(frozen=True, kw_only=True)
class ExportedLines:
    """A table exported as lines of one kind, filtered by `of` and ordered by `key`."""

    kind: str
    of: Column[str]
    key: Column[str]
    names: tuple[str, ...]


PROFILE = ExportedLines(kind="profile", of=PROFILES.c.owner, key=PROFILES.c.owner, names=("owner", "tier", "updated"))
FIELDS = ExportedLines(
    kind="profile_field",
    of=PROFILE_FIELDS.c.owner,
    key=PROFILE_FIELDS.c.field,
    names=("field", "body", "updated"),
)
SKILLS = ExportedLines(
    kind="skill_data",
    of=SKILL_DATA.c.owner,
    key=SKILL_DATA.c.skill,
    names=("skill", "body", "updated"),
)
DAYS = ExportedLines(
    kind="spending",
    of=SPENDING.c.owner,
    key=SPENDING.c.day,
    names=("day", "input", "output", "cached", "calls", "price"),
)
UPLOADS = ExportedLines(
    kind="attachment",
    of=ATTACHMENTS.c.owner,
    key=ATTACHMENTS.c.id,
    names=("id", "name", "kind", "mime_type", "size", "created"),
)
KNOWLEDGE = ExportedLines(
    kind="dataset",
    of=DATASETS.c.owner,
    key=DATASETS.c.id,
    names=("id", "name", "description", "created", "updated"),
)
CONVERSATIONS = ExportedLines(
    kind="thread",
    of=THREADS.c.owner,
    key=THREADS.c.id,
    names=("id", "title", "agent", "skill", "scenario", "created", "updated"),
)
ENTRIES = ExportedLines(
    kind="entry", of=LOG.c.thread, key=LOG.c.seq, names=("thread", "seq", "id", "kind", "run", "time", "body")
)
FILES = ExportedLines(
    kind="file",
    of=FILE_REFS.c.thread,
    key=FILE_REFS.c.id,
    names=("thread", "id", "attachment", "body", "created"),
)
WORK = ExportedLines(
    kind="run",
    of=RUNS.c.thread,
    key=RUNS.c.id,
    names=(
        *("id", "name", "thread", "agent", "tier", "status", "outcome", "error"),
        *("created", "started", "ended", "input", "usage"),
    ),
)
# Without `error`: provider errors are for operators.
CALL = ("number", "purpose", "model", "digest", "started", "ended", "finish", "usage", "price")
# The start of a table: a number below all numbers, else an empty text.
FIRST: Mapping[str, str | int] = {"entry": 0}


@dataclass(frozen=True, kw_only=True)
class DeletedUser:
    """Numbers of deleted rows of a user, and the runs that had not ended.

    `shares` are other users' datasets shared with this user. `blobs` are names to delete from the storage.
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
    for lines in (PROFILE, FIELDS, SKILLS, DAYS, UPLOADS):
        async for row in _rows(database, lines, owner):
            more = {"savings": await _savings(database, owner, str(row["day"]))} if lines is DAYS else {}
            yield _line(lines, {**row, **more})
    async for row in _rows(database, KNOWLEDGE, owner):
        users = await database.read(partial(datasets.list_shares, id=str(row["id"])))
        yield _line(KNOWLEDGE, {**row, "shared_with": users})
    async for thread in _rows(database, CONVERSATIONS, owner):
        yield _line(CONVERSATIONS, thread)
        async for line in _of_thread(database, str(thread["id"])):
            yield line


async def _savings(database: Database, owner: str, day: str) -> Sequence[Mapping[str, object]]:
    that = date.fromisoformat(day)
    return [asdict(one) for one in await database.read(partial(saved, owner=owner, since=that, until=that))]


async def _of_thread(database: Database, thread: str) -> AsyncGenerator[bytes]:
    for lines in (ENTRIES, FILES):
        async for row in _rows(database, lines, thread):
            yield _line(lines, row)
    async for run in _rows(database, WORK, thread):
        yield _line(WORK, run)
        async for line in _calls(database, str(run["id"])):
            yield line


async def _calls(database: Database, run: str) -> AsyncGenerator[bytes]:
    """Yield the model calls of a run, each with its page; one in memory at a time."""
    for summary in await database.read(partial(list_summaries, run=run)):
        try:
            seen = await database.read(partial(read_call, run=run, number=summary.number))
        except NotFound:
            # Deleted during the export.
            return
        row = {name: _exported(name, getattr(summary, name)) for name in CALL}
        yield dump({"type": "call", "run": run, **row, "page": _json(seen.body) if seen.body else None}) + b"\n"


async def _rows(database: Database, lines: ExportedLines, of: str) -> AsyncGenerator[Mapping[str, object]]:
    after: object = FIRST.get(lines.kind, "")
    while rows := await database.read(partial(_page, lines=lines, of=of, after=after)):
        for row in rows:
            yield row
        after = rows[-1][lines.key.name]


def _page(connection: Connection, lines: ExportedLines, of: str, after: object) -> Sequence[Mapping[str, object]]:
    columns = [lines.of.table.c[name] for name in lines.names]
    query = select(*columns).where(lines.of == of, lines.key > after).order_by(lines.key).limit(PAGE)
    return [dict(zip(lines.names, row, strict=True)) for row in connection.execute(query)]


def _line(lines: ExportedLines, row: Mapping[str, object]) -> bytes:
    return dump({"type": lines.kind, **{name: _exported(name, value) for name, value in row.items()}}) + b"\n"


def _exported(name: str, value: object) -> object:
    if isinstance(value, datetime):
        return time_text(value)
    if name in TIMES and isinstance(value, int):
        return time_text(from_micros(value))
    return _json(value) if name in BODIES and isinstance(value, bytes) else value


def _json(body: bytes) -> Json:
    try:
        return load(body)
    except ValueError:
        # Not written by Recto: export as text.
        return body.decode(errors="replace")


async def delete_user(database: Database, owner: str, today: date | None = None) -> DeletedUser:
    """Delete all data of a user except today's spending, which keeps the day's limit. Repeat after an interruption."""
    threads, stopped = 0, list[StoppedRun]()
    while found := await database.write(partial(_take_threads, owner=owner)):
        ids, runs = found
        for id in ids:
            await delete_rest(database, id)
        threads, stopped = threads + len(ids), [*stopped, *runs]
    uploads, blobs = await files.delete_all(database, owner)
    knowledge, shares = await database.write(partial(datasets.delete_all, owner=owner))
    profiles, days = await database.write(partial(_delete_rows, owner=owner, today=today))
    return DeletedUser(
        threads=threads,
        stopped=tuple(stopped),
        profiles=profiles,
        days=days,
        attachments=uploads,
        datasets=knowledge,
        shares=shares,
        blobs=blobs,
    )


def _take_threads(connection: Connection, owner: str) -> tuple[Sequence[str], Sequence[StoppedRun]] | None:
    query = select(THREADS.c.id).where(THREADS.c.owner == owner).order_by(THREADS.c.id).limit(TOGETHER)
    found = connection.execute(query).scalars().all()
    for id in found:
        lock_thread(connection, id)
    # Query again: while we waited for the lock, a thread may have been deleted and recreated by another user.
    ids = connection.execute(query.where(THREADS.c.id.in_(found))).scalars().all()
    return (ids, detach_threads(connection, ids)) if found else None


def _delete_rows(connection: Connection, owner: str, today: date | None) -> tuple[int, int]:
    profiles = connection.execute(delete(PROFILES).where(PROFILES.c.owner == owner)).rowcount
    connection.execute(delete(SAVINGS).where(SAVINGS.c.owner == owner))
    days = delete(SPENDING).where(SPENDING.c.owner == owner)
    if today is not None:
        days = days.where(SPENDING.c.day != today.isoformat())
    return profiles, connection.execute(days).rowcount
