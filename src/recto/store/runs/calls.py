"""SQL of model calls (X1): what was sent, put together from its segments, and whether it still is what was sent."""

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
from recto.store.schema import CALLS, RUNS, SEGMENTS, moment
from recto.store.statement import Statement, in_pieces

HASH_SIZE = 32
REPLY = "reply"
HAS_CALL = Statement(select(CALLS.c.number).where(CALLS.c.run == bindparam("of"), CALLS.c.number == bindparam("place")))
# Stands before what is stored as it is. What is compressed begins otherwise.
AS_IT_IS = b"\0"
# Below so many bytes, starting the compressor costs more than the bytes it saves.
WORTH_COMPRESSING = 512
NO_PAGE = (
    "The page of call {n} cannot be put together: {damaged} is damaged or gone. Look at the call for what is left."
)
NO_MANIFEST = "The manifest of call {n} is damaged or of another version, so the call cannot be compared."


@dataclass(frozen=True, kw_only=True)
class CallSummary:
    """A model call without its page. `manifest` is None where its row was damaged."""

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
    """A model call of a thread: its run, and two figures of its manifest, which it is without; None: it was damaged."""

    run: str
    summary: CallSummary
    tokens: int | None
    saved: int | None


@dataclass(frozen=True, kw_only=True)
class CallSeen:
    """A model call with its page, checked. `damaged` names what is not as it was written; then there is no body."""

    summary: CallSummary
    body: bytes | None
    damaged: tuple[str, ...]


def pack(data: bytes) -> bytes:
    """Bytes of a page or a manifest, as they are stored."""
    return zlib.compress(data, 1) if len(data) >= WORTH_COMPRESSING else AS_IT_IS + data


def unpack(data: bytes) -> bytes:
    """What was packed. Damage raises `zlib.error`."""
    return data[1:] if data.startswith(AS_IT_IS) else zlib.decompress(data)


def calls_of(connection: Connection, run: str) -> tuple[StoredCall, ...]:
    """The model calls of a run, in order, each with its whole body."""
    thread = _thread_of(connection, run)
    rows = connection.execute(select(CALLS).where(CALLS.c.run == run).order_by(CALLS.c.number)).all()
    pages = list(_hashes(rows))
    stored = _segments(connection, thread, {hash for page in pages for hash in page})
    data = {hash: unpack(packed) for hash, packed in stored.items()}
    return tuple(_call(row, b"".join([data[hash] for hash in page])) for row, page in zip(rows, pages, strict=True))


def summaries_of(connection: Connection, run: str) -> tuple[CallSummary, ...]:
    """The model calls of a run, in order, without their pages."""
    rows = connection.execute(select(CALLS).where(CALLS.c.run == run).order_by(CALLS.c.number))
    return tuple([_summary(row) for row in rows])


def newest_of_thread(connection: Connection, thread: str, limit: int) -> tuple[ThreadCall, ...]:
    """The newest model calls of a thread, newest first. Manifests are large: one is unpacked at a time."""
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
    """Return whether a call is stored. Its segments are as long as it is."""
    return bool(HAS_CALL.rows(connection, {"of": run, "place": number}))


def look_at(connection: Connection, run: str, number: int) -> CallSeen:
    """One call, with only its own segments read, each checked against its hash, and their list against the digest."""
    thread = _thread_of(connection, run)
    row = connection.execute(select(CALLS).where(CALLS.c.run == run, CALLS.c.number == number)).one_or_none()
    if row is None:
        raise NotFound(what=f"call of run {run}", id=str(number))
    chain: Select[*tuple[object, ...]] = select(CALLS.c.shared, CALLS.c.hashes).order_by(CALLS.c.number)
    before = connection.execute(chain.where(CALLS.c.run == run, CALLS.c.number <= number)).all()
    page = list(_hashes(before))[-1]
    stored = _segments(connection, thread, set(page))
    # Punctuation is in a page again and again.
    data = {hash: _unpacked(stored.get(hash)) for hash in dict.fromkeys(page)}
    damaged = [hash.hex() for hash, found in data.items() if found is None or sha256(found).digest() != hash]
    if sha256(b"".join(page)).hexdigest() != row.digest:
        damaged.append("digest")
    summary = _summary(row)
    if summary.manifest is None:
        damaged.append("manifest")
    is_whole = not [name for name in damaged if name != "manifest"]
    body = b"".join([data[hash] or b"" for hash in page]) if is_whole else None
    return CallSeen(summary=summary, body=body, damaged=tuple(damaged))


def before(connection: Connection, run: str, number: int) -> tuple[str, int] | None:
    """The call of its thread that was made before a call, for the same: its run and number. None: there is none."""
    this = select(RUNS.c.thread, RUNS.c.number, CALLS.c.purpose).join(CALLS, CALLS.c.run == RUNS.c.id)
    thread, place, purpose = connection.execute(this.where(RUNS.c.id == run, CALLS.c.number == number)).one()
    is_earlier = or_(RUNS.c.number < place, and_(RUNS.c.id == run, CALLS.c.number < number))
    return _newest(connection, and_(RUNS.c.thread == thread, CALLS.c.purpose == purpose, is_earlier))


def answered(connection: Connection, run: str, number: int) -> tuple[str, int] | None:
    """A call for a reply, or else the newest before it in its thread, that was paid for: others left no cache."""
    this = select(RUNS.c.thread, RUNS.c.number).where(RUNS.c.id == run).subquery()
    is_earlier = or_(RUNS.c.number < this.c.number, and_(RUNS.c.id == run, CALLS.c.number <= number))
    is_answered = and_(CALLS.c.purpose == REPLY, CALLS.c.usage.is_not(None))
    return _newest(connection, and_(RUNS.c.thread == this.c.thread, is_earlier, is_answered))


def _newest(connection: Connection, which: ColumnElement[bool]) -> tuple[str, int] | None:
    found = select(CALLS.c.run, CALLS.c.number).join(RUNS, CALLS.c.run == RUNS.c.id).where(which)
    newest = found.order_by(RUNS.c.number.desc(), CALLS.c.number.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    return (row.run, row.number) if row else None


def page_of(seen: CallSeen) -> bytes:
    """The page of a call. One that is no longer what was sent is none."""
    if seen.body is None:
        raise Conflict(NO_PAGE.format(n=seen.summary.number, damaged=", ".join(seen.damaged)))
    return seen.body


def sent_page(seen: CallSeen) -> SentPage:
    """A call as it can be compared with others. One that is damaged cannot."""
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
    """Hashes that stand behind each other."""
    return [hashes[at : at + HASH_SIZE] for at in range(0, len(hashes), HASH_SIZE)]


def _segments(connection: Connection, thread: str, hashes: set[bytes]) -> Mapping[bytes, bytes]:
    """Segments as they are stored."""
    found: dict[bytes, bytes] = {}
    for some in in_pieces(sorted(hashes)):
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
        started=moment(row.started),
        first_token=moment(row.first_token) if row.first_token is not None else None,
        ended=moment(row.ended) if row.ended is not None else None,
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
        started=moment(row.started),
        first_token=moment(row.first_token) if row.first_token is not None else None,
        ended=moment(row.ended) if row.ended is not None else None,
        finish=row.finish,
        usage=row.usage,
        error=row.error,
    )
