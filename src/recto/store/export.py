"""SQL of a user's data: all of it as JSON lines, a page at a time; and all of it deleted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Column, Connection, delete, select

from recto.page.canonical import Json, dump, load
from recto.page.history import told_time
from recto.store.database import Database
from recto.store.schema import FILE_REFS, LOG, PROFILES, RUNS, SPENDING, THREADS, moment
from recto.store.threads import Stopped, remove

# Rows in memory at once, and threads deleted in one write.
PAGE, TOGETHER = 200, 10
TIMES = frozenset({"created", "updated", "started", "ended", "time"})
BODIES = frozenset({"body", "input", "usage"})


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Rows of a table that are somebody's, as lines of one kind: found by `of`, in the order of `key`."""

    kind: str
    of: Column[str]
    key: Column[str]
    names: tuple[str, ...]


PROFILE = Lines(kind="profile", of=PROFILES.c.owner, key=PROFILES.c.owner, names=("owner", "tier", "body", "updated"))
DAYS = Lines(
    kind="spending",
    of=SPENDING.c.owner,
    key=SPENDING.c.day,
    names=("day", "input", "output", "cached", "calls", "price"),
)
CONVERSATIONS = Lines(
    kind="thread",
    of=THREADS.c.owner,
    key=THREADS.c.id,
    names=("id", "title", "agent", "skill", "scenario", "created", "updated"),
)
ENTRIES = Lines(
    kind="entry", of=LOG.c.thread, key=LOG.c.seq, names=("thread", "seq", "id", "kind", "run", "time", "body")
)
FILES = Lines(kind="file", of=FILE_REFS.c.thread, key=FILE_REFS.c.id, names=("thread", "id", "body", "created"))
WORK = Lines(
    kind="run",
    of=RUNS.c.thread,
    key=RUNS.c.id,
    names=(
        *("id", "name", "thread", "agent", "status", "outcome", "error"),
        *("created", "started", "ended", "input", "usage"),
    ),
)
# A number comes before all that are given, an empty text before all texts.
FIRST: Mapping[str, str | int] = {"entry": 0}


@dataclass(frozen=True, kw_only=True)
class UserDeleted:
    """What is gone: threads, the profile, days of spending; and the runs that had not ended."""

    threads: int
    stopped: tuple[Stopped, ...]
    profiles: int
    days: int


async def export_user(database: Database, owner: str) -> AsyncGenerator[bytes]:
    """Profile, spending, then each thread with its entries, files and runs. A line is an object that says its type."""
    for lines in (PROFILE, DAYS):
        async for row in _rows(database, lines, owner):
            yield _line(lines, row)
    async for thread in _rows(database, CONVERSATIONS, owner):
        yield _line(CONVERSATIONS, thread)
        for lines in (ENTRIES, FILES, WORK):
            async for row in _rows(database, lines, str(thread["id"])):
                yield _line(lines, row)


async def _rows(database: Database, lines: Lines, of: str) -> AsyncGenerator[Mapping[str, object]]:
    after: object = FIRST.get(lines.kind, "")
    while rows := await database.read(partial(_page, lines=lines, of=of, after=after)):
        for row in rows:
            yield row
        after = rows[-1][lines.key.name]


def _page(connection: Connection, lines: Lines, of: str, after: object) -> Sequence[Mapping[str, object]]:
    columns = [lines.of.table.c[name] for name in lines.names]
    query = select(*columns).where(lines.of == of, lines.key > after).order_by(lines.key).limit(PAGE)
    return [dict(zip(lines.names, row, strict=True)) for row in connection.execute(query)]


def _line(lines: Lines, row: Mapping[str, object]) -> bytes:
    return dump({"type": lines.kind, **{name: _told(name, value) for name, value in row.items()}}) + b"\n"


def _told(name: str, value: object) -> object:
    if name in TIMES and isinstance(value, int):
        return told_time(moment(value))
    return _json(value) if name in BODIES and isinstance(value, bytes) else value


def _json(body: bytes) -> Json:
    try:
        return load(body)
    except ValueError:
        # Not written by us: told as it is, as far as it is text.
        return body.decode(errors="replace")


async def delete_user(database: Database, owner: str) -> UserDeleted:
    """Delete all there is of a user. Where it breaks off it may be asked for again."""
    threads, stopped = 0, list[Stopped]()
    while found := await database.write(partial(_delete_threads, owner=owner)):
        threads += len(found)
        stopped += [run for runs in found for run in runs]
    profiles, days = await database.write(partial(_delete_rest, owner=owner))
    return UserDeleted(threads=threads, stopped=tuple(stopped), profiles=profiles, days=days)


def _delete_threads(connection: Connection, owner: str) -> list[tuple[Stopped, ...]]:
    query = select(THREADS.c.id).where(THREADS.c.owner == owner).order_by(THREADS.c.id).limit(TOGETHER)
    ids = connection.execute(query).scalars().all()
    # All of them in one order, as everybody takes them: else two who take several could wait for each other.
    connection.execute(select(RUNS.c.id).where(RUNS.c.thread.in_(ids)).order_by(RUNS.c.id).with_for_update())
    return [remove(connection, id) for id in ids]


def _delete_rest(connection: Connection, owner: str) -> tuple[int, int]:
    profiles = connection.execute(delete(PROFILES).where(PROFILES.c.owner == owner)).rowcount
    return profiles, connection.execute(delete(SPENDING).where(SPENDING.c.owner == owner)).rowcount
