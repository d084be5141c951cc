"""SQL of model calls (X1): pages joined from stored segments and checked against their digests."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, or_, select

from recto.conversation.json import Json, load_object
from recto.errors import Conflict, NotFound, WireError
from recto.page.manifest import read_manifest
from recto.page.prefix import SentPage
from recto.store.ports import StoredCall
from recto.store.schema import CALLS, RUNS, SEGMENTS, from_micros
from recto.store.statement import Statement, batches

HASH_SIZE = 32
REPLY = "reply"
HAS_CALL = Statement(select(CALLS.c.number).where(CALLS.c.run == bindparam("of"), CALLS.c.number == bindparam("place")))
# Prefix of bytes that are stored uncompressed. Compressed data starts with another byte.
AS_IT_IS = b"\0"
# For fewer bytes, compression costs more than it saves.
WORTH_COMPRESSING = 512
NO_PAGE = (
    "The page of call {n} cannot be put together: {damaged} is damaged or gone. Look at the call for what is left."
)
NO_MANIFEST = "The manifest of call {n} is damaged or of another version, so the call cannot be compared."


@dataclass(frozen=True, kw_only=True)
class CallSummary:
    """A model call without its page. `manifest` is None if its row is damaged."""

    number: int
    purpose: str
    model: str
    digest: str
    manifest: bytes | None
    started: datetime
    first_token: datetime | None
    ended: datetime | None
    finish: str | None
    usage: bytes | None
    price: int | None
    error: str | None


@dataclass(frozen=True, kw_only=True)
class ThreadCall:
    """A model call of a thread: its run, and two figures of its manifest (None: damaged) instead of the manifest."""

    run: str
    summary: CallSummary
    tokens: int | None
    saved: int | None


@dataclass(frozen=True, kw_only=True)
class CheckedCall:
    """A model call with its checked page. If `damaged` names a segment or the digest, `body` is None."""

    summary: CallSummary
    body: bytes | None
    damaged: tuple[str, ...]


def pack(data: bytes) -> bytes:
    """Compress bytes of a page or a manifest for storage."""
    return zlib.compress(data, 1) if len(data) >= WORTH_COMPRESSING else AS_IT_IS + data


def unpack(data: bytes) -> bytes:
    """Restore packed bytes. Damage raises `zlib.error`."""
    return data[1:] if data.startswith(AS_IT_IS) else zlib.decompress(data)


def calls_of(connection: Connection, run: str) -> tuple[StoredCall, ...]:
    """Return the model calls of a run, in order, each with its whole body."""
    thread = _thread_of(connection, run)
    rows = connection.execute(select(CALLS).where(CALLS.c.run == run).order_by(CALLS.c.number)).all()
    pages = list(_hashes(rows))
    stored = _segments(connection, thread, {hash for page in pages for hash in page})
    data = {hash: unpack(packed) for hash, packed in stored.items()}
    return tuple(_call(row, b"".join([data[hash] for hash in page])) for row, page in zip(rows, pages, strict=True))


def list_summaries(connection: Connection, run: str) -> tuple[CallSummary, ...]:
    """Return the model calls of a run, in order, without their pages."""
    rows = connection.execute(select(CALLS).where(CALLS.c.run == run).order_by(CALLS.c.number))
    return tuple([_summary(row) for row in rows])


def newest_of_thread(connection: Connection, thread: str, limit: int) -> tuple[ThreadCall, ...]:
    """Return the newest model calls of a thread, newest first. Unpack one manifest at a time: they are large."""
    found = select(CALLS).join(RUNS, CALLS.c.run == RUNS.c.id).where(RUNS.c.thread == thread)
    rows = connection.execute(found.order_by(RUNS.c.number.desc(), CALLS.c.number.desc()).limit(limit))
    return tuple([_thread_call(row.run, _summary(row)) for row in rows])


def _thread_call(run: str, call: CallSummary) -> ThreadCall:
    stored = load_object(call.manifest) if call.manifest else None
    tokens = stored.get("tokens") if stored else None
    return ThreadCall(
        run=run,
        summary=replace(call, manifest=None),
        tokens=tokens if isinstance(tokens, int) else None,
        saved=_saved(stored) if stored else None,
    )


def _saved(stored: Mapping[str, Json]) -> int | None:
    try:
        return read_manifest(stored).tokens_saved
    except WireError:
        return None


def is_stored(connection: Connection, run: str, number: int) -> bool:
    """Return whether a model call is stored. Cleanup deletes old calls."""
    return bool(HAS_CALL.rows(connection, {"of": run, "place": number}))


def read_call(connection: Connection, run: str, number: int) -> CheckedCall:
    """Return one model call with its page, each segment checked against its hash. Report damage instead of raising."""
    thread = _thread_of(connection, run)
    row = connection.execute(select(CALLS).where(CALLS.c.run == run, CALLS.c.number == number)).one_or_none()
    if row is None:
        raise NotFound(what=f"call of run {run}", id=str(number))
    chain: Select[*tuple[object, ...]] = select(CALLS.c.shared, CALLS.c.hashes).order_by(CALLS.c.number)
    before = connection.execute(chain.where(CALLS.c.run == run, CALLS.c.number <= number)).all()
    page = list(_hashes(before))[-1]
    stored = _segments(connection, thread, set(page))
    # Punctuation segments repeat within a page.
    data = {hash: _unpacked(stored.get(hash)) for hash in dict.fromkeys(page)}
    damaged = [hash.hex() for hash, found in data.items() if found is None or sha256(found).digest() != hash]
    if sha256(b"".join(page)).hexdigest() != row.digest:
        damaged.append("digest")
    summary = _summary(row)
    if summary.manifest is None:
        damaged.append("manifest")
    is_whole = not [name for name in damaged if name != "manifest"]
    body = b"".join([data[hash] or b"" for hash in page]) if is_whole else None
    return CheckedCall(summary=summary, body=body, damaged=tuple(damaged))


def before(connection: Connection, run: str, number: int) -> tuple[str, int] | None:
    """Return run and number of the previous call of the thread for the same purpose, or None."""
    this = select(RUNS.c.thread, RUNS.c.number, CALLS.c.purpose).join(CALLS, CALLS.c.run == RUNS.c.id)
    thread, place, purpose = connection.execute(this.where(RUNS.c.id == run, CALLS.c.number == number)).one()
    is_earlier = or_(RUNS.c.number < place, and_(RUNS.c.id == run, CALLS.c.number < number))
    return _newest(connection, and_(RUNS.c.thread == thread, CALLS.c.purpose == purpose, is_earlier))


def answered(connection: Connection, run: str, number: int) -> tuple[str, int] | None:
    """Return run and number of this or the newest earlier reply call of the thread with usage. Other calls left no
    cache.
    """
    this = select(RUNS.c.thread, RUNS.c.number).where(RUNS.c.id == run).subquery()
    is_earlier = or_(RUNS.c.number < this.c.number, and_(RUNS.c.id == run, CALLS.c.number <= number))
    is_answered = and_(CALLS.c.purpose == REPLY, CALLS.c.usage.is_not(None))
    return _newest(connection, and_(RUNS.c.thread == this.c.thread, is_earlier, is_answered))


def _newest(connection: Connection, which: ColumnElement[bool]) -> tuple[str, int] | None:
    found = select(CALLS.c.run, CALLS.c.number).join(RUNS, CALLS.c.run == RUNS.c.id).where(which)
    newest = found.order_by(RUNS.c.number.desc(), CALLS.c.number.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    return (row.run, row.number) if row else None


def page_of(seen: CheckedCall) -> bytes:
    """Return the page of a call. Raise Conflict if it is damaged."""
    if seen.body is None:
        raise Conflict(NO_PAGE.format(n=seen.summary.number, damaged=", ".join(seen.damaged)))
    return seen.body


def sent_page(seen: CheckedCall) -> SentPage:
    """Return a call in a form that can be compared. Raise Conflict if it is damaged."""
    call, body = seen.summary, page_of(seen)
    try:
        manifest = read_manifest(load_object(call.manifest or b"") or {})
    except WireError as error:
        raise Conflict(NO_MANIFEST.format(n=call.number)) from error
    return SentPage(body=body, manifest=manifest, model=call.model, purpose=call.purpose)


def _thread_of(connection: Connection, run: str) -> str:
    thread = connection.execute(select(RUNS.c.thread).where(RUNS.c.id == run)).scalar_one_or_none()
    if thread is None:
        raise NotFound(what="run", id=run)
    return thread


def _hashes(rows: Sequence[Row[*tuple[object, ...]]]) -> Iterator[list[bytes]]:
    page: list[bytes] = []
    for row in rows:
        page = page[: row.shared] + split(row.hashes)
        yield page


def split(hashes: bytes) -> list[bytes]:
    """Split concatenated hashes."""
    return [hashes[at : at + HASH_SIZE] for at in range(0, len(hashes), HASH_SIZE)]


def _segments(connection: Connection, thread: str, hashes: set[bytes]) -> Mapping[bytes, bytes]:
    """Return stored segments by hash."""
    found: dict[bytes, bytes] = {}
    for some in batches(sorted(hashes)):
        query = select(SEGMENTS.c.hash, SEGMENTS.c.data).where(SEGMENTS.c.thread == thread, SEGMENTS.c.hash.in_(some))
        found |= {bytes(hash): bytes(data) for hash, data in connection.execute(query)}
    return found


def _unpacked(data: bytes | None) -> bytes | None:
    try:
        return unpack(data) if data is not None else None
    except zlib.error:
        return None


def _summary(row: Row[*tuple[object, ...]]) -> CallSummary:
    return CallSummary(
        number=row.number,
        purpose=row.purpose,
        model=row.model,
        digest=row.digest,
        manifest=_unpacked(row.manifest),
        started=from_micros(row.started),
        first_token=from_micros(row.first_token) if row.first_token is not None else None,
        ended=from_micros(row.ended) if row.ended is not None else None,
        finish=row.finish,
        usage=row.usage,
        price=row.price,
        error=row.error,
    )


def _call(row: Row[*tuple[object, ...]], body: bytes) -> StoredCall:
    return StoredCall(
        number=row.number,
        purpose=row.purpose,
        model=row.model,
        digest=row.digest,
        body=body,
        manifest=unpack(row.manifest),
        started=from_micros(row.started),
        first_token=from_micros(row.first_token) if row.first_token is not None else None,
        ended=from_micros(row.ended) if row.ended is not None else None,
        finish=row.finish,
        usage=row.usage,
        error=row.error,
    )
