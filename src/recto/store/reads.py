"""SQL of reading: logs, events, calls. Nothing here changes a row."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import cast

from sqlalchemy import Connection, Row, bindparam, func, select

from recto.errors import NotFound
from recto.page import Entry
from recto.store.entries import decode_entry
from recto.store.ports import StoredCall, StoredEvent
from recto.store.schema import CALLS, EVENTS, LOG, RUNS, SEGMENTS, moment
from recto.store.statement import Statement

HASH_SIZE = 32
# Databases limit how many values one question may name.
AT_ONCE = 500

_entries = select(LOG.c.kind, LOG.c.body, LOG.c.id, LOG.c.seq, LOG.c.time)
LOG_AFTER = Statement(
    _entries.where(LOG.c.thread == bindparam("this"), LOG.c.seq > bindparam("after")).order_by(LOG.c.seq)
)
_events = select(EVENTS.c.number, EVENTS.c.body)
EVENTS_AFTER = Statement(
    _events.where(EVENTS.c.run == bindparam("this"), EVENTS.c.number > bindparam("after"))
    .order_by(EVENTS.c.number)
    .limit(bindparam("most"))
)


def log_after(connection: Connection, thread: str, seq: int) -> tuple[Entry, ...]:
    """The entries of a log behind a number, in order."""
    rows = cast(
        "Sequence[tuple[str, bytes, str, int, int]]", LOG_AFTER.rows(connection, {"this": thread, "after": seq})
    )
    return tuple([decode_entry(kind, body, id=id, seq=seq, time=moment(at)) for kind, body, id, seq, at in rows])


def events_after(connection: Connection, run: str, number: int, limit: int) -> tuple[StoredEvent, ...]:
    """Events of a run behind a number, in order."""
    found = EVENTS_AFTER.rows(connection, {"this": run, "after": number, "most": limit})
    rows = cast("Sequence[tuple[int, bytes]]", found)
    return tuple([StoredEvent(number=found, body=body) for found, body in rows])


def calls_of(connection: Connection, run: str) -> tuple[StoredCall, ...]:
    """The model calls of a run, in order, each with its whole body."""
    thread = connection.execute(select(RUNS.c.thread).where(RUNS.c.id == run)).scalar_one_or_none()
    if thread is None:
        raise NotFound(what="run", id=run)
    rows = connection.execute(select(CALLS).where(CALLS.c.run == run).order_by(CALLS.c.number)).all()
    pages = list(_hashes(rows))
    data = _segments(connection, thread, {hash for page in pages for hash in page})
    return tuple(_call(row, b"".join([data[hash] for hash in page])) for row, page in zip(rows, pages, strict=True))


def _hashes(rows: Sequence[Row[tuple[object, ...]]]) -> Iterator[list[bytes]]:
    page: list[bytes] = []
    for row in rows:
        rest: bytes = row.hashes
        page = page[: row.shared] + [rest[at : at + HASH_SIZE] for at in range(0, len(rest), HASH_SIZE)]
        yield page


def _segments(connection: Connection, thread: str, hashes: set[bytes]) -> dict[bytes, bytes]:
    wanted, found = sorted(hashes), dict[bytes, bytes]()
    for at in range(0, len(wanted), AT_ONCE):
        some = SEGMENTS.c.hash.in_(wanted[at : at + AT_ONCE])
        query = select(SEGMENTS.c.hash, SEGMENTS.c.data).where(SEGMENTS.c.thread == thread, some)
        found |= {bytes(hash): zlib.decompress(data) for hash, data in connection.execute(query)}
    return found


def _call(row: Row[tuple[object, ...]], body: bytes) -> StoredCall:
    return StoredCall(
        number=row.number,
        purpose=row.purpose,
        model=row.model,
        digest=row.digest,
        body=body,
        manifest=zlib.decompress(row.manifest),
        started=moment(row.started),
        first_token=moment(row.first_token) if row.first_token is not None else None,
        ended=moment(row.ended) if row.ended is not None else None,
        finish=row.finish,
        usage=row.usage,
        error=row.error,
    )


def count_waiting(connection: Connection) -> int:
    """How many runs wait to be claimed."""
    return connection.execute(select(func.count()).where(RUNS.c.status == "queued")).scalar_one()
