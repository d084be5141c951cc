"""SQL of reading: logs, events, calls. Nothing here changes a row."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, Row, func, select

from recto.errors import NotFound
from recto.page import Entry
from recto.store.entries import decode_entry
from recto.store.ports import StoredCall, StoredEvent
from recto.store.schema import CALLS, EVENTS, LOG, RUNS, SEGMENTS

HASH_SIZE = 32
# Databases limit how many values one question may name.
AT_ONCE = 500


def log_after(connection: Connection, thread: str, seq: int) -> tuple[Entry, ...]:
    """The entries of a log behind a number, in order."""
    columns = (LOG.c.kind, LOG.c.body, LOG.c.id, LOG.c.seq, LOG.c.time)
    query = select(*columns).where(LOG.c.thread == thread, LOG.c.seq > seq).order_by(LOG.c.seq)
    rows = connection.execute(query)
    return tuple([decode_entry(kind, body, id=id, seq=seq, time=time) for kind, body, id, seq, time in rows])


def events_after(connection: Connection, run: str, number: int, limit: int) -> tuple[StoredEvent, ...]:
    """Events of a run behind a number, in order."""
    query = select(EVENTS.c.number, EVENTS.c.body).where(EVENTS.c.run == run, EVENTS.c.number > number)
    rows = connection.execute(query.order_by(EVENTS.c.number).limit(limit))
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
        started=row.started,
        first_token=row.first_token,
        ended=row.ended,
        finish=row.finish,
        usage=row.usage,
        error=row.error,
    )


def count_waiting(connection: Connection) -> int:
    """How many runs wait to be claimed."""
    return connection.execute(select(func.count()).where(RUNS.c.status == "queued")).scalar_one()
