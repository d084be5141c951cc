"""SQL of attachments and their blobs. A blob's row is deleted with its last attachment, never before.

A transaction that adds or deletes attachments locks their owner first: the blob and the total are the owner's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from recto.conversation.message_files import Attachment
from recto.errors import FileRefused, NotFound
from recto.store.cursor import decode_cursor, encode_cursor
from recto.store.database.database import Database, lock_files
from recto.store.schema import ATTACHMENTS, BLOBS, FILE_REFS, FILE_TOTALS, from_micros, to_micros
from recto.store.statement import BATCH_SIZE, Statement, insert_into

QUOTA_EXCEEDED = "with it you would have {all:,} {what}; you may have {most:,}. Delete some that you no longer need"


@dataclass(frozen=True, kw_only=True)
class AttachmentList:
    """Attachments, newest first, and the cursor of the next page."""

    attachments: tuple[Attachment, ...]
    next: str | None


class AttachmentCursor(NamedTuple):
    """The position of a search in attachments ordered by creation."""

    created: int = 0
    id: str = ""


class Total(NamedTuple):
    """Sums of a user's attachments."""

    bytes: int = 0
    files: int = 0


NAMES = [field.name for field in fields(Attachment) if field.name != "is_new"]
STORED = [name for name in NAMES if name != "sha256"]
_query = select(*[BLOBS.c.sha256 if name == "sha256" else ATTACHMENTS.c[name] for name in NAMES]).join(
    BLOBS, BLOBS.c.name == ATTACHMENTS.c.blob
)
FIND = Statement(_query.where(ATTACHMENTS.c.id == bindparam("this")))
ADD = insert_into(ATTACHMENTS, STORED)


def _make_upsert_blob() -> Statement:
    """Return the statement that inserts a user's blob, or finds the one with the same bytes."""
    on_postgres, on_sqlite = (
        kind.insert(BLOBS)
        .on_conflict_do_update(index_elements=["owner", "sha256"], set_={"size": BLOBS.c.size})
        .returning(BLOBS.c.name)
        for kind in (postgresql, sqlite)
    )
    return Statement(on_postgres, columns=("name", "owner", "sha256", "size", "created"), on_sqlite=on_sqlite)


def _make_raise_total() -> Statement:
    on_postgres, on_sqlite = (
        clause.on_conflict_do_update(
            index_elements=["owner"],
            set_={name: FILE_TOTALS.c[name] + clause.excluded[name] for name in ("bytes", "files")},
        )
        for clause in (postgresql.insert(FILE_TOTALS), sqlite.insert(FILE_TOTALS))
    )
    return Statement(on_postgres, columns=("owner", "bytes", "files"), on_sqlite=on_sqlite)


UPSERT_BLOB = _make_upsert_blob()
_is_owner = FILE_TOTALS.c.owner == bindparam("owner_is")
FIND_TOTALS = Statement(select(FILE_TOTALS.c.bytes, FILE_TOTALS.c.files).where(_is_owner))
LOWER_TOTAL = Statement(
    update(FILE_TOTALS)
    .where(_is_owner)
    .values(bytes=FILE_TOTALS.c.bytes - bindparam("less_bytes"), files=FILE_TOTALS.c.files - bindparam("less_files"))
)
DELETE_TOTAL = Statement(delete(FILE_TOTALS).where(_is_owner, FILE_TOTALS.c.files == 0))
RAISE_TOTAL = _make_raise_total()


def add(connection: Connection, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
    """Store an attachment, on an existing blob of its owner if that has the same bytes.

    Raise FileRefused if the user would have more bytes or files than allowed. 0 sets no limit.
    """
    lock_files(connection, attachment.owner)
    if user_bytes or user_files:
        _check_quota(connection, attachment, Total(user_bytes, user_files))
    created = to_micros(attachment.created)
    blob = {column: getattr(attachment, column) for column in ("owner", "sha256", "size")}
    name = cast("str", UPSERT_BLOB.rows(connection, {**blob, "name": attachment.blob, "created": created})[0][0])
    stored = replace(attachment, blob=name)
    ADD.run_many(connection, [{**{column: getattr(stored, column) for column in STORED}, "created": created}])
    _raise_total(connection, stored.owner, stored.size)
    return stored


def _check_quota(connection: Connection, attachment: Attachment, limit: Total) -> None:
    now = _read_total(connection, attachment.owner)
    after = Total(now.bytes + attachment.size, now.files + 1)
    if limit.bytes and after.bytes > limit.bytes:
        raise FileRefused(QUOTA_EXCEEDED.format(all=after.bytes, what="bytes of files", most=limit.bytes), code="quota")
    if limit.files and after.files > limit.files:
        raise FileRefused(QUOTA_EXCEEDED.format(all=after.files, what="files", most=limit.files), code="quota")


def total_bytes(connection: Connection, owner: str) -> int:
    """Return the bytes of all attachments of a user."""
    return _read_total(connection, owner).bytes


def find(connection: Connection, id: str, owner: str | None = None) -> Attachment:
    """Return an attachment. Raise NotFound if it does not exist or belongs to another owner than the one given."""
    rows = FIND.rows(connection, {"this": id})
    attachment = _parse_row(rows[0]) if rows else None
    if attachment is None or owner not in (None, attachment.owner):
        raise NotFound(what="attachment", id=id)
    return attachment


def find_same(connection: Connection, owner: str, sha256: str, name: str) -> Attachment | None:
    """Return the owner's newest attachment with these bytes and this name."""
    query = _query.where(BLOBS.c.owner == owner, BLOBS.c.sha256 == sha256, ATTACHMENTS.c.name == name)
    row = connection.execute(
        query.order_by(ATTACHMENTS.c.created.desc(), ATTACHMENTS.c.id.desc()).limit(1)
    ).one_or_none()
    return _parse_row(tuple(row)) if row else None


def list_page(connection: Connection, owner: str, cursor: str | None, limit: int) -> AttachmentList:
    """Return attachments of an owner, newest first."""
    query = _query.where(ATTACHMENTS.c.owner == owner)
    if cursor is not None:
        created, id = decode_cursor(cursor)
        is_same_time = and_(ATTACHMENTS.c.created == created, ATTACHMENTS.c.id < id)
        query = query.where(ATTACHMENTS.c.created <= created, or_(ATTACHMENTS.c.created < created, is_same_time))
    # One row more shows if another page follows.
    ordered = query.order_by(ATTACHMENTS.c.created.desc(), ATTACHMENTS.c.id.desc()).limit(limit + 1)
    attachments = [_parse_row(tuple(row)) for row in connection.execute(ordered)]
    page = tuple(attachments[:limit])
    next_cursor = encode_cursor(to_micros(page[-1].created), page[-1].id) if len(attachments) > limit else None
    return AttachmentList(attachments=page, next=next_cursor)


def existing_blobs(connection: Connection, names: Sequence[str]) -> frozenset[str]:
    """Return those of these blob names that exist."""
    pieces = [names[at : at + BATCH_SIZE] for at in range(0, len(names), BATCH_SIZE)]
    queries = [select(BLOBS.c.name).where(BLOBS.c.name.in_(piece)) for piece in pieces]
    return frozenset(name for query in queries for name in connection.execute(query).scalars())


def rename_blob(connection: Connection, old: str, new: str) -> None:
    """Rename a blob; its attachments follow. An unknown blob changes nothing."""
    for owner in connection.execute(select(BLOBS.c.owner).where(BLOBS.c.name == old)).scalars().all():
        lock_files(connection, owner)
        connection.execute(update(BLOBS).where(BLOBS.c.name == old).values(name=new))


def delete_one(connection: Connection, owner: str, id: str) -> tuple[str, ...]:
    """Delete an attachment. Return the blob's name if no other attachment uses it."""
    lock_files(connection, owner)
    count, blobs = _delete(connection, and_(ATTACHMENTS.c.owner == owner, ATTACHMENTS.c.id == id))
    if not count:
        raise NotFound(what="attachment", id=id)
    return blobs


async def delete_all(database: Database, owner: str) -> tuple[int, tuple[str, ...]]:
    """Delete an owner's attachments in batches. Return their number and the names of unused blobs."""
    total, blobs = 0, list[str]()
    while True:
        count, unused_blobs = await database.write(partial(delete_batch, owner=owner))
        total += count
        blobs += unused_blobs
        if count < BATCH_SIZE:
            return total, tuple(blobs)


def delete_batch(connection: Connection, owner: str) -> tuple[int, tuple[str, ...]]:
    """Delete one batch of an owner's attachments. Return their number and the names of unused blobs."""
    lock_files(connection, owner)
    batch = select(ATTACHMENTS.c.id).where(ATTACHMENTS.c.owner == owner).limit(BATCH_SIZE)
    return _delete(connection, _lock_attachments(connection, connection.execute(batch).scalars().all()))


def _lock_attachments(connection: Connection, ids: Sequence[str]) -> ColumnElement[bool]:
    """Lock these attachments against new references."""
    is_listed = ATTACHMENTS.c.id.in_(ids)
    # In the order in which admissions lock them, to prevent deadlocks.
    connection.execute(select(ATTACHMENTS.c.id).where(is_listed).order_by(ATTACHMENTS.c.id).with_for_update())
    return is_listed


async def delete_unused(
    database: Database, before: datetime, limit: int, after: AttachmentCursor
) -> tuple[int, tuple[str, ...], AttachmentCursor]:
    """Delete old attachments that no thread refers to, oldest first.

    Return their number, the names of unused blobs, and where to continue: at the beginning after the last one.
    """
    candidates = await database.read(partial(find_unused, before=before, limit=limit, after=after))
    cursor = candidates[-1] if candidates and len(candidates) == limit else AttachmentCursor()
    ids = [candidate.id for candidate in candidates]
    count, blobs = await database.write(partial(delete_if_unused, ids=ids)) if ids else (0, ())
    return count, blobs, cursor


def find_unused(
    connection: Connection, before: datetime, limit: int, after: AttachmentCursor
) -> tuple[AttachmentCursor, ...]:
    """Return the next old attachments that no thread refers to, oldest first."""
    columns = (ATTACHMENTS.c.created, ATTACHMENTS.c.id)
    is_after = or_(ATTACHMENTS.c.created > after.created, ATTACHMENTS.c.id > after.id)
    is_old = and_(ATTACHMENTS.c.created < to_micros(before), ATTACHMENTS.c.created >= after.created)
    query = select(*columns).where(is_old, is_after, ~_is_referenced()).order_by(*columns).limit(limit)
    return tuple([AttachmentCursor(*row) for row in connection.execute(query)])


def delete_if_unused(connection: Connection, ids: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Delete those of these attachments that still no thread refers to."""
    owners = connection.execute(select(ATTACHMENTS.c.owner).where(ATTACHMENTS.c.id.in_(ids))).scalars()
    lock_files(connection, *set(owners))
    return _delete(connection, and_(_lock_attachments(connection, ids), ~_is_referenced()))


def delete_owner_unused(connection: Connection, owner: str, ids: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Delete those of an owner's attachments that no thread refers to."""
    lock_files(connection, owner)
    return _delete(
        connection, and_(_lock_attachments(connection, ids), ATTACHMENTS.c.owner == owner, ~_is_referenced())
    )


def _is_referenced() -> ColumnElement[bool]:
    return exists().where(FILE_REFS.c.attachment == ATTACHMENTS.c.id)


def _delete(connection: Connection, condition: ColumnElement[bool]) -> tuple[int, tuple[str, ...]]:
    """Delete attachments of locked users and the rows of unused blobs. Return the number and those blobs."""
    columns = (ATTACHMENTS.c.owner, ATTACHMENTS.c.size, ATTACHMENTS.c.blob)
    rows = connection.execute(delete(ATTACHMENTS).where(condition).returning(*columns)).all()
    if not rows:
        return 0, ()
    totals: dict[str, Total] = {}
    for owner, size, _blob in rows:
        less = totals.get(owner, Total())
        totals[owner] = Total(less.bytes + size, less.files + 1)
    _lower_totals(connection, totals)
    is_candidate = BLOBS.c.name.in_(sorted({row.blob for row in rows}))
    has_attachment = exists().where(ATTACHMENTS.c.blob == BLOBS.c.name)
    blobs = (
        connection.execute(delete(BLOBS).where(is_candidate, ~has_attachment).returning(BLOBS.c.name)).scalars().all()
    )
    return len(rows), tuple(sorted(blobs))


def _parse_row(row: Sequence[object]) -> Attachment:
    values = dict(zip(NAMES, row, strict=True))
    values["created"] = from_micros(cast("int", values["created"]))
    return Attachment(**cast("dict[str, datetime]", values))  # pyright: ignore[reportArgumentType] - by name


def _read_total(connection: Connection, owner: str) -> Total:
    rows = FIND_TOTALS.rows(connection, {"owner_is": owner})
    return Total(*cast("tuple[int, int]", rows[0])) if rows else Total()


def _raise_total(connection: Connection, owner: str, size: int) -> None:
    RAISE_TOTAL.run_many(connection, [{"owner": owner, "bytes": size, "files": 1}])


def _lower_totals(connection: Connection, decreases: Mapping[str, Total]) -> None:
    """Lower the totals of users, and delete those without files."""
    rows = [
        {"owner_is": owner, "less_bytes": decrease.bytes, "less_files": decrease.files}
        for owner, decrease in decreases.items()
    ]
    LOWER_TOTAL.run_many(connection, rows)
    DELETE_TOTAL.run_many(connection, [{"owner_is": owner} for owner in decreases])
