"""SQL of attachments and of the blobs they stand on. A blob's row goes with its last attachment, never before.

Whoever adds or deletes locks the user first: a blob is one user's, and so is the total that changes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from recto.conversation.attachment import Attachment
from recto.errors import FileRefused, NotFound
from recto.store.cursor import read_cursor, write_cursor
from recto.store.database.database import Database, lock_files
from recto.store.schema import ATTACHMENTS, BLOBS, FILE_REFS, FILE_TOTALS, micros, moment
from recto.store.statement import AT_ONCE, Statement, insert_into

FULL = "with it you would have {all:,} {what}; you may have {most:,}. Delete some that you no longer need"


@dataclass(frozen=True, kw_only=True)
class AttachmentList:
    """Attachments, newest first, and the cursor of those that follow."""

    attachments: tuple[Attachment, ...]
    next: str | None


class AttachmentCursor(NamedTuple):
    """How far a search has come among attachments, in the order they were made in."""

    created: int = 0
    id: str = ""


class Total(NamedTuple):
    """So many bytes in so many files."""

    bytes: int = 0
    files: int = 0


NAMES = [field.name for field in fields(Attachment) if field.name != "is_new"]
STORED = [name for name in NAMES if name != "sha256"]
_found = select(*[BLOBS.c.sha256 if name == "sha256" else ATTACHMENTS.c[name] for name in NAMES]).join(
    BLOBS, BLOBS.c.name == ATTACHMENTS.c.blob
)
FIND = Statement(_found.where(ATTACHMENTS.c.id == bindparam("this")))
ADD = insert_into(ATTACHMENTS, STORED)


def _take_blob() -> Statement:
    """The row of some bytes of a user, made or found."""
    on_postgres, on_sqlite = (
        kind.insert(BLOBS)
        .on_conflict_do_update(index_elements=["owner", "sha256"], set_={"size": BLOBS.c.size})
        .returning(BLOBS.c.name)
        for kind in (postgresql, sqlite)
    )
    return Statement(on_postgres, columns=("name", "owner", "sha256", "size", "created"), on_sqlite=on_sqlite)


def _raise() -> Statement:
    on_postgres, on_sqlite = (
        clause.on_conflict_do_update(
            index_elements=["owner"],
            set_={name: FILE_TOTALS.c[name] + clause.excluded[name] for name in ("bytes", "files")},
        )
        for clause in (postgresql.insert(FILE_TOTALS), sqlite.insert(FILE_TOTALS))
    )
    return Statement(on_postgres, columns=("owner", "bytes", "files"), on_sqlite=on_sqlite)


TAKE_BLOB = _take_blob()
_of_owner = FILE_TOTALS.c.owner == bindparam("owner_is")
FIND_TOTALS = Statement(select(FILE_TOTALS.c.bytes, FILE_TOTALS.c.files).where(_of_owner))
LOWER = Statement(
    update(FILE_TOTALS)
    .where(_of_owner)
    .values(bytes=FILE_TOTALS.c.bytes - bindparam("less_bytes"), files=FILE_TOTALS.c.files - bindparam("less_files"))
)
FORGET = Statement(delete(FILE_TOTALS).where(_of_owner, FILE_TOTALS.c.files == 0))
RAISE = _raise()


def add(connection: Connection, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
    """Store an attachment on the blob of its owner that has its bytes, a new or an older one."""
    lock_files(connection, attachment.owner)
    if user_bytes or user_files:
        _check_room(connection, attachment, Total(user_bytes, user_files))
    created = micros(attachment.created)
    blob = {column: getattr(attachment, column) for column in ("owner", "sha256", "size")}
    name = cast("str", TAKE_BLOB.rows(connection, {**blob, "name": attachment.blob, "created": created})[0][0])
    stored = replace(attachment, blob=name)
    ADD.many(connection, [{**{column: getattr(stored, column) for column in STORED}, "created": created}])
    _raise_total(connection, stored.owner, stored.size)
    return stored


def _check_room(connection: Connection, attachment: Attachment, most: Total) -> None:
    now = _total_of(connection, attachment.owner)
    after = Total(now.bytes + attachment.size, now.files + 1)
    if most.bytes and after.bytes > most.bytes:
        raise FileRefused(FULL.format(all=after.bytes, what="bytes of files", most=most.bytes), code="quota")
    if most.files and after.files > most.files:
        raise FileRefused(FULL.format(all=after.files, what="files", most=most.files), code="quota")


def used(connection: Connection, owner: str) -> int:
    """The bytes of all a user's attachments."""
    return _total_of(connection, owner).bytes


def find(connection: Connection, id: str, owner: str | None = None) -> Attachment:
    """An attachment; of this owner, where one is named."""
    rows = FIND.rows(connection, {"this": id})
    found = _attachment(rows[0]) if rows else None
    if found is None or owner not in (None, found.owner):
        raise NotFound(what="attachment", id=id)
    return found


def same(connection: Connection, owner: str, sha256: str, name: str) -> Attachment | None:
    """The owner's newest attachment with these bytes under this name."""
    query = _found.where(BLOBS.c.owner == owner, BLOBS.c.sha256 == sha256, ATTACHMENTS.c.name == name)
    row = connection.execute(
        query.order_by(ATTACHMENTS.c.created.desc(), ATTACHMENTS.c.id.desc()).limit(1)
    ).one_or_none()
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


def rename_blob(connection: Connection, old: str, new: str) -> None:
    """Have a blob go by a new name. Its attachments follow, for they refer to it."""
    for owner in connection.execute(select(BLOBS.c.owner).where(BLOBS.c.name == old)).scalars().all():
        lock_files(connection, owner)
        connection.execute(update(BLOBS).where(BLOBS.c.name == old).values(name=new))


def delete_one(connection: Connection, owner: str, id: str) -> tuple[str, ...]:
    """Delete an attachment. Returns its blob, if no other stands on it."""
    lock_files(connection, owner)
    count, blobs = _delete(connection, and_(ATTACHMENTS.c.owner == owner, ATTACHMENTS.c.id == id))
    if not count:
        raise NotFound(what="attachment", id=id)
    return blobs


async def delete_all_of(database: Database, owner: str) -> tuple[int, tuple[str, ...]]:
    """Delete the attachments of an owner, in pieces: how many, and the blobs nobody has any more."""
    total, blobs = 0, list[str]()
    while True:
        count, gone = await database.write(partial(delete_some_of, owner=owner))
        total += count
        blobs += gone
        if count < AT_ONCE:
            return total, tuple(blobs)


def delete_some_of(connection: Connection, owner: str) -> tuple[int, tuple[str, ...]]:
    """Delete attachments of an owner, as many as go in one write: how many, and the blobs nobody has any more."""
    lock_files(connection, owner)
    some = select(ATTACHMENTS.c.id).where(ATTACHMENTS.c.owner == owner).limit(AT_ONCE)
    return _delete(connection, _held(connection, connection.execute(some).scalars().all()))


def _held(connection: Connection, ids: Sequence[str]) -> ColumnElement[bool]:
    """These attachments. No run that comes names one of them until we are done."""
    mine = ATTACHMENTS.c.id.in_(ids)
    # In the order runs hold them in, so that none of us waits for the other.
    connection.execute(select(ATTACHMENTS.c.id).where(mine).order_by(ATTACHMENTS.c.id).with_for_update())
    return mine


async def delete_unused(
    database: Database, before: datetime, limit: int, after: AttachmentCursor
) -> tuple[int, tuple[str, ...], AttachmentCursor]:
    """Delete attachments made before a time that no thread refers to, oldest first; looked for by a reader.

    Returns how many, the blobs nobody has any more, and where to go on: at the beginning, once all were looked at.
    """
    found = await database.read(partial(unused, before=before, limit=limit, after=after))
    place = found[-1] if found and len(found) == limit else AttachmentCursor()
    ids = [one.id for one in found]
    count, blobs = await database.write(partial(delete_if_unused, ids=ids)) if ids else (0, ())
    return count, blobs, place


def unused(
    connection: Connection, before: datetime, limit: int, after: AttachmentCursor
) -> tuple[AttachmentCursor, ...]:
    """Attachments behind a place, made before a time, that no thread refers to, oldest first."""
    columns = (ATTACHMENTS.c.created, ATTACHMENTS.c.id)
    behind = or_(ATTACHMENTS.c.created > after.created, ATTACHMENTS.c.id > after.id)
    old = and_(ATTACHMENTS.c.created < micros(before), ATTACHMENTS.c.created >= after.created)
    query = select(*columns).where(old, behind, ~_is_used()).order_by(*columns).limit(limit)
    return tuple([AttachmentCursor(*row) for row in connection.execute(query)])


def delete_if_unused(connection: Connection, ids: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Delete those of some attachments that still no thread refers to."""
    owners = connection.execute(select(ATTACHMENTS.c.owner).where(ATTACHMENTS.c.id.in_(ids))).scalars()
    lock_files(connection, *set(owners))
    return _delete(connection, and_(_held(connection, ids), ~_is_used()))


def delete_unused_of(connection: Connection, owner: str, ids: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Delete those of some attachments of an owner that no thread refers to."""
    lock_files(connection, owner)
    return _delete(connection, and_(_held(connection, ids), ATTACHMENTS.c.owner == owner, ~_is_used()))


def _is_used() -> ColumnElement[bool]:
    return exists().where(FILE_REFS.c.attachment == ATTACHMENTS.c.id)


def _delete(connection: Connection, which: ColumnElement[bool]) -> tuple[int, tuple[str, ...]]:
    """Delete attachments of users who are locked, and the rows of blobs none stands on: how many, and which blobs."""
    columns = (ATTACHMENTS.c.owner, ATTACHMENTS.c.size, ATTACHMENTS.c.blob)
    gone = connection.execute(delete(ATTACHMENTS).where(which).returning(*columns)).all()
    if not gone:
        return 0, ()
    totals: dict[str, Total] = {}
    for owner, size, _blob in gone:
        less = totals.get(owner, Total())
        totals[owner] = Total(less.bytes + size, less.files + 1)
    _lower_totals(connection, totals)
    mine = BLOBS.c.name.in_(sorted({row.blob for row in gone}))
    is_left = exists().where(ATTACHMENTS.c.blob == BLOBS.c.name)
    blobs = connection.execute(delete(BLOBS).where(mine, ~is_left).returning(BLOBS.c.name)).scalars().all()
    return len(gone), tuple(sorted(blobs))


def _attachment(row: Sequence[object]) -> Attachment:
    values = dict(zip(NAMES, row, strict=True))
    values["created"] = moment(cast("int", values["created"]))
    return Attachment(**cast("dict[str, datetime]", values))  # pyright: ignore[reportArgumentType] - by name


def _total_of(connection: Connection, owner: str) -> Total:
    """What all files of a user come to."""
    rows = FIND_TOTALS.rows(connection, {"owner_is": owner})
    return Total(*cast("tuple[int, int]", rows[0])) if rows else Total()


def _raise_total(connection: Connection, owner: str, size: int) -> None:
    """One file more."""
    RAISE.many(connection, [{"owner": owner, "bytes": size, "files": 1}])


def _lower_totals(connection: Connection, gone: Mapping[str, Total]) -> None:
    """So much less of each of these users. Of a user without files nothing is left."""
    rows = [{"owner_is": owner, "less_bytes": less.bytes, "less_files": less.files} for owner, less in gone.items()]
    LOWER.many(connection, rows)
    FORGET.many(connection, [{"owner_is": owner} for owner in gone])
