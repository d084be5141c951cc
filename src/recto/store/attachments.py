"""SQL of attachments and of the blobs they stand on. A blob's row goes with its last attachment, never before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from typing import cast

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from recto.errors import FileRefused, NotFound
from recto.page.attachment import Attachment
from recto.store.cursor import read_cursor, write_cursor
from recto.store.database import Database
from recto.store.locks import lock_files
from recto.store.reads import AT_ONCE
from recto.store.schema import ATTACHMENTS, BLOBS, FILE_REFS, micros, moment
from recto.store.statement import Statement, insert_into

FULL = "with it you would have {all:,} bytes of files; you may have {most:,}. Delete some that you no longer need"


@dataclass(frozen=True, kw_only=True)
class AttachmentList:
    """Attachments, newest first, and the cursor of those that follow."""

    attachments: tuple[Attachment, ...]
    next: str | None


NAMES = [field.name for field in fields(Attachment)]
STORED = [name for name in NAMES if name != "sha256"]
_found = select(*[BLOBS.c.sha256 if name == "sha256" else ATTACHMENTS.c[name] for name in NAMES]).join(
    BLOBS, BLOBS.c.name == ATTACHMENTS.c.blob
)
FIND = Statement(_found.where(ATTACHMENTS.c.id == bindparam("this")))
USED = Statement(
    select(func.coalesce(func.sum(ATTACHMENTS.c.size), 0)).where(ATTACHMENTS.c.owner == bindparam("owner_is"))
)
ADD = insert_into(ATTACHMENTS, STORED)


def _take_blob() -> Statement:
    """The row of some bytes, made or found, and held: who deletes the last attachment on it waits, then sees ours."""
    on_postgres, on_sqlite = (
        kind.insert(BLOBS)
        .on_conflict_do_update(index_elements=["sha256"], set_={"size": BLOBS.c.size})
        .returning(BLOBS.c.name)
        for kind in (postgresql, sqlite)
    )
    return Statement(on_postgres, columns=("name", "sha256", "size", "created"), on_sqlite=on_sqlite)


TAKE_BLOB = _take_blob()


def add(connection: Connection, attachment: Attachment, user_bytes: int) -> Attachment:
    """Store an attachment on the blob that has its bytes, its own or an older one."""
    if user_bytes:
        _check_room(connection, attachment, user_bytes)
    created = micros(attachment.created)
    blob = {"name": attachment.blob, "sha256": attachment.sha256, "size": attachment.size, "created": created}
    name = cast("str", TAKE_BLOB.rows(connection, blob)[0][0])
    stored = replace(attachment, blob=name)
    ADD.many(connection, [{**{column: getattr(stored, column) for column in STORED}, "created": created}])
    return stored


def _check_room(connection: Connection, attachment: Attachment, user_bytes: int) -> None:
    lock_files(connection, attachment.owner)
    total = used(connection, attachment.owner) + attachment.size
    if total > user_bytes:
        raise FileRefused(FULL.format(all=total, most=user_bytes), code="quota")


def used(connection: Connection, owner: str) -> int:
    """The bytes of all a user's attachments, whoever else has the same."""
    # PostgreSQL adds up large numbers as decimals.
    return int(cast("int", USED.rows(connection, {"owner_is": owner})[0][0]))


def find(connection: Connection, id: str, owner: str | None = None) -> Attachment:
    """An attachment; of this owner, where one is named."""
    rows = FIND.rows(connection, {"this": id})
    found = _attachment(rows[0]) if rows else None
    if found is None or owner not in (None, found.owner):
        raise NotFound(what="attachment", id=id)
    return found


def same(connection: Connection, owner: str, sha256: str, name: str) -> Attachment | None:
    """The owner's newest attachment with these bytes under this name."""
    query = _found.where(BLOBS.c.sha256 == sha256, ATTACHMENTS.c.owner == owner, ATTACHMENTS.c.name == name)
    row = connection.execute(query.order_by(ATTACHMENTS.c.id.desc()).limit(1)).one_or_none()
    return _attachment(tuple(row)) if row else None


def list_of(connection: Connection, owner: str, cursor: str | None, limit: int) -> AttachmentList:
    """Attachments of an owner, newest first."""
    query = _found.where(ATTACHMENTS.c.owner == owner)
    if cursor is not None:
        created, id = read_cursor(cursor)
        same = and_(ATTACHMENTS.c.created == created, ATTACHMENTS.c.id < id)
        query = query.where(ATTACHMENTS.c.created <= created, or_(ATTACHMENTS.c.created < created, same))
    # One more than wanted tells whether more follow.
    ordered = query.order_by(ATTACHMENTS.c.created.desc(), ATTACHMENTS.c.id.desc()).limit(limit + 1)
    found = [_attachment(tuple(row)) for row in connection.execute(ordered)]
    kept = tuple(found[:limit])
    more = write_cursor(micros(kept[-1].created), kept[-1].id) if len(found) > limit else None
    return AttachmentList(attachments=kept, next=more)


def known_blobs(connection: Connection, names: Sequence[str]) -> frozenset[str]:
    """Those of these blobs that somebody has."""
    pieces = [names[at : at + AT_ONCE] for at in range(0, len(names), AT_ONCE)]
    queries = [select(BLOBS.c.name).where(BLOBS.c.name.in_(piece)) for piece in pieces]
    return frozenset(name for query in queries for name in connection.execute(query).scalars())


def delete_one(connection: Connection, owner: str, id: str) -> tuple[str, ...]:
    """Delete an attachment. Returns its blob, if nobody else has it."""
    count, blobs = _delete(connection, and_(ATTACHMENTS.c.owner == owner, ATTACHMENTS.c.id == id))
    if not count:
        raise NotFound(what="attachment", id=id)
    return blobs


async def delete_all_of(database: Database, owner: str) -> tuple[int, tuple[str, ...]]:
    """Delete the attachments of an owner, in pieces: how many, and the blobs nobody has any more."""
    total, blobs = 0, list[str]()
    while True:
        count, gone = await database.write(partial(_delete_some_of, owner=owner))
        total, blobs = total + count, [*blobs, *gone]
        if count < AT_ONCE:
            return total, tuple(blobs)


def _delete_some_of(connection: Connection, owner: str) -> tuple[int, tuple[str, ...]]:
    some = select(ATTACHMENTS.c.id).where(ATTACHMENTS.c.owner == owner).order_by(ATTACHMENTS.c.id).limit(AT_ONCE)
    return _delete(connection, ATTACHMENTS.c.id.in_(connection.execute(some.with_for_update()).scalars().all()))


async def delete_unused(database: Database, before: datetime, limit: int) -> tuple[int, tuple[str, ...]]:
    """Delete attachments made before a time that no thread refers to, oldest first; looked for by a reader."""
    ids = await database.read(partial(unused, before=before, limit=limit))
    return await database.write(partial(delete_if_unused, ids=ids)) if ids else (0, ())


def unused(connection: Connection, before: datetime, limit: int) -> tuple[str, ...]:
    """Attachments made before a time that no thread refers to, oldest first."""
    query = select(ATTACHMENTS.c.id).where(ATTACHMENTS.c.created < micros(before), ~_is_used())
    return tuple(connection.execute(query.order_by(ATTACHMENTS.c.created, ATTACHMENTS.c.id).limit(limit)).scalars())


def delete_if_unused(connection: Connection, ids: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Delete those of some attachments that still no thread refers to."""
    mine = ATTACHMENTS.c.id.in_(ids)
    # Held first, so that no run that names one of them comes between our look and our deletion.
    connection.execute(select(ATTACHMENTS.c.id).where(mine).order_by(ATTACHMENTS.c.id).with_for_update())
    return _delete(connection, and_(mine, ~_is_used()))


def _is_used() -> ColumnElement[bool]:
    return exists().where(FILE_REFS.c.attachment == ATTACHMENTS.c.id)


def _delete(connection: Connection, which: ColumnElement[bool]) -> tuple[int, tuple[str, ...]]:
    """Delete attachments, and the rows of blobs that none is left of: how many, and which blobs."""
    gone = connection.execute(delete(ATTACHMENTS).where(which).returning(ATTACHMENTS.c.blob)).scalars().all()
    if not gone:
        return 0, ()
    mine = BLOBS.c.name.in_(sorted(set(gone)))
    # One after another, each with a fresh look: else two who delete the last two would each leave it to the other.
    connection.execute(select(BLOBS.c.name).where(mine).order_by(BLOBS.c.name).with_for_update())
    is_left = exists().where(ATTACHMENTS.c.blob == BLOBS.c.name)
    blobs = connection.execute(delete(BLOBS).where(mine, ~is_left).returning(BLOBS.c.name)).scalars().all()
    return len(gone), tuple(sorted(blobs))


def _attachment(row: Sequence[object]) -> Attachment:
    values = dict(zip(NAMES, row, strict=True))
    values["created"] = moment(cast("int", values["created"]))
    return Attachment(**cast("dict[str, datetime]", values))  # pyright: ignore[reportArgumentType] - by name
