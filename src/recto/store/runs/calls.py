"""Model calls of runs (X1): pages joined from stored segments and checked against their digests."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, or_, select

from recto.conversation.json import load_object
from recto.errors import Conflict, NotFound, WireError
from recto.page.manifest import read_manifest
from recto.page.prefix import SentPage
from recto.store.database.database import Repository, key_lookup, read_transaction
from recto.store.ports import StoredCall
from recto.store.runs.run_rows import check_owner
from recto.store.schema import CALLS, RUNS, SEGMENTS, from_micros
from recto.store.statement import Statement, batches

HASH_SIZE = 32
REPLY = "reply"
FIND = Statement(select(CALLS.c.number).where(CALLS.c.run == bindparam("of"), CALLS.c.number == bindparam("call")))
# Prefix of bytes that are stored uncompressed. Compressed data starts with another byte.
UNCOMPRESSED = b"\0"
# Bytes below which compression costs more than it saves.
MIN_COMPRESSED_BYTES = 512
NO_PAGE = "The page of call {n} cannot be restored: {damaged} is damaged or missing. The call shows what is left."
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
    """A model call of a thread: its run, and two figures from its manifest. None means that the manifest is damaged."""

    run: str
    summary: CallSummary
    tokens: int | None
    saved: int | None


@dataclass(frozen=True, kw_only=True)
class CheckedCall:
    """A model call with its checked page. If damaged, `damaged` names the segments or the digest and `body` is None."""

    summary: CallSummary
    body: bytes | None
    damaged: tuple[str, ...]


def pack(data: bytes) -> bytes:
    """Compress bytes of a page or a manifest for storage."""
    return zlib.compress(data, 1) if len(data) >= MIN_COMPRESSED_BYTES else UNCOMPRESSED + data


def unpack(data: bytes) -> bytes:
    """Restore packed bytes. Damage raises `zlib.error`."""
    return data[1:] if data.startswith(UNCOMPRESSED) else zlib.decompress(data)


def split(hashes: bytes) -> list[bytes]:
    """Split concatenated hashes."""
    return [hashes[at : at + HASH_SIZE] for at in range(0, len(hashes), HASH_SIZE)]


class Calls(Repository):
    """The model calls of runs."""

    @read_transaction
    def list_full(self, connection: Connection, run: str) -> tuple[StoredCall, ...]:
        """Return the model calls of a run, in order, each with its whole body."""
        thread = _find_thread(connection, run)
        rows = connection.execute(select(CALLS).where(CALLS.c.run == run).order_by(CALLS.c.number)).all()
        pages = list(_join_hashes(rows))
        segments = _read_segments(connection, thread, {hash for page in pages for hash in page})
        data = {hash: unpack(packed) for hash, packed in segments.items()}
        bodies = [b"".join([data[hash] for hash in page]) for page in pages]
        return tuple([_parse_call(row, body) for row, body in zip(rows, bodies, strict=True)])

    @read_transaction
    def list_summaries(self, connection: Connection, run: str) -> tuple[CallSummary, ...]:
        """Return the model calls of a run, in order, without their pages."""
        rows = connection.execute(select(CALLS).where(CALLS.c.run == run).order_by(CALLS.c.number))
        return tuple([_parse_summary(row) for row in rows])

    @key_lookup
    def exists(self, connection: Connection, run: str, number: int) -> bool:
        """Return True if a model call is stored. Cleanup deletes old calls."""
        return bool(FIND.rows(connection, {"of": run, "call": number}))

    @read_transaction
    def read(self, connection: Connection, run: str, number: int) -> CheckedCall:
        """Return a model call with its page. Check each segment against its hash, and report damage in the result."""
        thread = _find_thread(connection, run)
        row = connection.execute(select(CALLS).where(CALLS.c.run == run, CALLS.c.number == number)).one_or_none()
        if row is None:
            raise NotFound(what=f"call of run {run}", id=str(number))
        chain: Select[*tuple[object, ...]] = select(CALLS.c.shared, CALLS.c.hashes).order_by(CALLS.c.number)
        rows = connection.execute(chain.where(CALLS.c.run == run, CALLS.c.number <= number)).all()
        page = list(_join_hashes(rows))[-1]
        segments = _read_segments(connection, thread, set(page))
        # Check each segment once, because punctuation segments repeat within a page.
        data = {hash: _unpack_or_none(segments.get(hash)) for hash in dict.fromkeys(page)}
        damaged = [hash.hex() for hash, segment in data.items() if segment is None or sha256(segment).digest() != hash]
        if sha256(b"".join(page)).hexdigest() != row.digest:
            damaged.append("digest")
        body = None if damaged else b"".join([data[hash] or b"" for hash in page])
        summary = _parse_summary(row)
        if summary.manifest is None:
            damaged.append("manifest")
        return CheckedCall(summary=summary, body=body, damaged=tuple(damaged))

    @read_transaction
    def find_previous(self, connection: Connection, run: str, number: int) -> tuple[str, int] | None:
        """Return the run and the number of the thread's previous call for the same purpose, or None."""
        query = select(RUNS.c.thread, RUNS.c.number, CALLS.c.purpose).join(CALLS, CALLS.c.run == RUNS.c.id)
        thread, place, purpose = connection.execute(query.where(RUNS.c.id == run, CALLS.c.number == number)).one()
        is_earlier = or_(RUNS.c.number < place, and_(RUNS.c.id == run, CALLS.c.number < number))
        return _find_newest(connection, and_(RUNS.c.thread == thread, CALLS.c.purpose == purpose, is_earlier))

    @read_transaction
    def find_answered(self, connection: Connection, run: str, number: int) -> tuple[str, int] | None:
        """Return the run and the number of this call or the newest earlier reply call of the thread with usage.

        Calls without usage leave nothing in the provider's cache.
        """
        place = select(RUNS.c.thread, RUNS.c.number).where(RUNS.c.id == run).subquery()
        is_earlier = or_(RUNS.c.number < place.c.number, and_(RUNS.c.id == run, CALLS.c.number <= number))
        is_answered = and_(CALLS.c.purpose == REPLY, CALLS.c.usage.is_not(None))
        return _find_newest(connection, and_(RUNS.c.thread == place.c.thread, is_earlier, is_answered))

    @read_transaction
    def list_newest(self, connection: Connection, owner: str, id: str, limit: int) -> tuple[ThreadCall, ...]:
        """Return the newest model calls of a thread, newest first, without pages and manifests."""
        check_owner(connection, owner, id)
        query = select(CALLS).join(RUNS, CALLS.c.run == RUNS.c.id).where(RUNS.c.thread == id)
        rows = connection.execute(query.order_by(RUNS.c.number.desc(), CALLS.c.number.desc()).limit(limit))
        # Read one manifest at a time, because manifests are large.
        return tuple([_parse_thread_call(row.run, _parse_summary(row)) for row in rows])


def page_of(call: CheckedCall) -> bytes:
    """Return the page of a call. Raise Conflict if it is damaged."""
    if call.body is None:
        raise Conflict(NO_PAGE.format(n=call.summary.number, damaged=", ".join(call.damaged)))
    return call.body


def sent_page(call: CheckedCall) -> SentPage:
    """Return a call as a page that can be compared. Raise Conflict if the call is damaged."""
    summary, body = call.summary, page_of(call)
    try:
        manifest = read_manifest(load_object(summary.manifest or b"") or {})
    except WireError as error:
        raise Conflict(NO_MANIFEST.format(n=summary.number)) from error
    return SentPage(body=body, manifest=manifest, model=summary.model, purpose=summary.purpose)


def _find_newest(connection: Connection, condition: ColumnElement[bool]) -> tuple[str, int] | None:
    query = select(CALLS.c.run, CALLS.c.number).join(RUNS, CALLS.c.run == RUNS.c.id).where(condition)
    row = connection.execute(query.order_by(RUNS.c.number.desc(), CALLS.c.number.desc()).limit(1)).one_or_none()
    return (row.run, row.number) if row else None


def _find_thread(connection: Connection, run: str) -> str:
    thread = connection.execute(select(RUNS.c.thread).where(RUNS.c.id == run)).scalar_one_or_none()
    if thread is None:
        raise NotFound(what="run", id=run)
    return thread


def _join_hashes(rows: Sequence[Row[*tuple[object, ...]]]) -> Iterator[list[bytes]]:
    """Yield the segment hashes of each page."""
    page: list[bytes] = []
    for row in rows:
        page = page[: row.shared] + split(row.hashes)
        yield page


def _read_segments(connection: Connection, thread: str, hashes: set[bytes]) -> Mapping[bytes, bytes]:
    """Return stored segments by hash."""
    segments: dict[bytes, bytes] = {}
    for batch in batches(sorted(hashes)):
        query = select(SEGMENTS.c.hash, SEGMENTS.c.data).where(SEGMENTS.c.thread == thread, SEGMENTS.c.hash.in_(batch))
        segments |= {bytes(hash): bytes(data) for hash, data in connection.execute(query)}
    return segments


def _unpack_or_none(data: bytes | None) -> bytes | None:
    try:
        return unpack(data) if data is not None else None
    except zlib.error:
        return None


def _parse_thread_call(run: str, call: CallSummary) -> ThreadCall:
    manifest = load_object(call.manifest) if call.manifest else None
    tokens = manifest.get("tokens") if manifest else None
    try:
        saved = read_manifest(manifest).tokens_saved if manifest else None
    except WireError:
        saved = None
    summary = replace(call, manifest=None)
    return ThreadCall(run=run, summary=summary, tokens=tokens if isinstance(tokens, int) else None, saved=saved)


def _parse_summary(row: Row[*tuple[object, ...]]) -> CallSummary:
    return CallSummary(
        number=row.number,
        purpose=row.purpose,
        model=row.model,
        digest=row.digest,
        manifest=_unpack_or_none(row.manifest),
        started=from_micros(row.started),
        first_token=from_micros(row.first_token) if row.first_token is not None else None,
        ended=from_micros(row.ended) if row.ended is not None else None,
        finish=row.finish,
        usage=row.usage,
        price=row.price,
        error=row.error,
    )


def _parse_call(row: Row[*tuple[object, ...]], body: bytes) -> StoredCall:
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
