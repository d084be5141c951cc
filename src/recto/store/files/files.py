"""Attachments of users, their blobs, and the file ids of threads (F4).

The row of a blob is deleted together with the last attachment that uses the blob. A transaction that adds or deletes
attachments locks their owner first, because it changes the owner's blobs and totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, or_, select, update

from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.json import dump, load_object
from recto.conversation.message_files import Attachment, FileRef
from recto.conversation.messages import FileKind
from recto.errors import FileRefused, InvalidRequest, NotFound
from recto.store.cursor import decode_cursor, encode_cursor
from recto.store.database.database import (
    Database,
    Repository,
    key_lookup,
    lock_files,
    read_transaction,
    write_transaction,
)
from recto.store.ports import Admission
from recto.store.schema import ATTACHMENTS, BLOBS, FILE_REFS, FILE_TOTALS, from_micros, to_micros
from recto.store.statement import BATCH_SIZE, Statement, batches, insert_into, insert_missing, insert_or

QUOTA_EXCEEDED = "with it you would have {all:,} {what}; you may have {most:,}. Delete some that you no longer need"


@dataclass(frozen=True, kw_only=True)
class AttachmentList:
    """Attachments, newest first, and the cursor of the next page."""

    attachments: tuple[Attachment, ...]
    next: str | None


class AttachmentCursor(NamedTuple):
    """The position of a search through attachments, ordered by creation."""

    created: int = 0
    id: str = ""


class Total(NamedTuple):
    """Total bytes and number of a user's attachments."""

    bytes: int = 0
    files: int = 0


NAMES = [field.name for field in fields(Attachment) if field.name != "is_new"]
ROW_NAMES = [name for name in NAMES if name != "sha256"]
_query = select(*[BLOBS.c.sha256 if name == "sha256" else ATTACHMENTS.c[name] for name in NAMES]).join(
    BLOBS, BLOBS.c.name == ATTACHMENTS.c.blob
)
FIND = Statement(_query.where(ATTACHMENTS.c.id == bindparam("this")))
ADD_ATTACHMENT = insert_into(ATTACHMENTS, ROW_NAMES)


# Statement that inserts a user's blob, or finds the blob with the same bytes.
UPSERT_BLOB = insert_or(
    BLOBS,
    ("name", "owner", "sha256", "size", "created"),
    lambda insert: insert.on_conflict_do_update(
        index_elements=["owner", "sha256"], set_={"size": BLOBS.c.size}
    ).returning(BLOBS.c.name),
)
RAISE_TOTAL = insert_or(
    FILE_TOTALS,
    ("owner", "bytes", "files"),
    lambda insert: insert.on_conflict_do_update(
        index_elements=["owner"],
        set_={name: FILE_TOTALS.c[name] + insert.excluded[name] for name in ("bytes", "files")},
    ),
)
_is_owner = FILE_TOTALS.c.owner == bindparam("owner_is")
FIND_TOTALS = Statement(select(FILE_TOTALS.c.bytes, FILE_TOTALS.c.files).where(_is_owner))
LOWER_TOTAL = Statement(
    update(FILE_TOTALS)
    .where(_is_owner)
    .values(bytes=FILE_TOTALS.c.bytes - bindparam("less_bytes"), files=FILE_TOTALS.c.files - bindparam("less_files"))
)
DELETE_TOTAL = Statement(delete(FILE_TOTALS).where(_is_owner, FILE_TOTALS.c.files == 0))
# Statement that locks an attachment against deletion until the run is stored.
LOCK_ATTACHMENT = Statement(
    select(ATTACHMENTS.c.id)
    .where(ATTACHMENTS.c.id == bindparam("this"), ATTACHMENTS.c.owner == bindparam("owner_is"))
    .with_for_update(read=True, key_share=True)
)
ADD_REF = insert_missing(FILE_REFS, ("thread", "id", "body", "created", "attachment"))
LIST_REFS = Statement(
    select(FILE_REFS.c.id, FILE_REFS.c.body, FILE_REFS.c.created, FILE_REFS.c.attachment, ATTACHMENTS.c.size)
    .join(ATTACHMENTS, ATTACHMENTS.c.id == FILE_REFS.c.attachment, isouter=True)
    .where(FILE_REFS.c.thread == bindparam("this"))
)


class Files(Repository):
    """The attachments of users, and the file ids of threads that refer to them."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._unused_from = AttachmentCursor()

    @write_transaction
    def add(self, connection: Connection, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
        """Store an attachment, on an existing blob of the owner if one has the same bytes.

        Raise FileRefused if the user would exceed the limit of bytes or files. 0 sets no limit.
        """
        lock_files(connection, attachment.owner)
        now = _read_total(connection, attachment.owner) if user_bytes or user_files else Total()
        for total, limit, what in (
            (now.bytes + attachment.size, user_bytes, "bytes of files"),
            (now.files + 1, user_files, "files"),
        ):
            if limit and total > limit:
                raise FileRefused(QUOTA_EXCEEDED.format(all=total, what=what, most=limit), code="quota")
        created = to_micros(attachment.created)
        blob = {column: getattr(attachment, column) for column in ("owner", "sha256", "size")}
        name = cast("str", UPSERT_BLOB.rows(connection, {**blob, "name": attachment.blob, "created": created})[0][0])
        row = replace(attachment, blob=name)
        ADD_ATTACHMENT.run_many(
            connection, [{**{column: getattr(row, column) for column in ROW_NAMES}, "created": created}]
        )
        RAISE_TOTAL.run_many(connection, [{"owner": row.owner, "bytes": row.size, "files": 1}])
        return row

    @read_transaction
    def find(self, connection: Connection, id: str, owner: str | None = None) -> Attachment:
        """Return an attachment. Raise NotFound if it does not exist or does not belong to `owner`.

        None allows any owner.
        """
        rows = FIND.rows(connection, {"this": id})
        attachment = _parse_row(rows[0]) if rows else None
        if attachment is None or owner not in (None, attachment.owner):
            raise NotFound(what="attachment", id=id)
        return attachment

    @read_transaction
    def find_same(self, connection: Connection, owner: str, sha256: str, name: str) -> Attachment | None:
        """Return the owner's newest attachment with these bytes and this name."""
        query = _query.where(BLOBS.c.owner == owner, BLOBS.c.sha256 == sha256, ATTACHMENTS.c.name == name)
        row = connection.execute(
            query.order_by(ATTACHMENTS.c.created.desc(), ATTACHMENTS.c.id.desc()).limit(1)
        ).one_or_none()
        return _parse_row(tuple(row)) if row else None

    @read_transaction
    def list_page(self, connection: Connection, owner: str, cursor: str | None, limit: int) -> AttachmentList:
        """Return attachments of an owner, newest first."""
        query = _query.where(ATTACHMENTS.c.owner == owner)
        if cursor is not None:
            created, id = decode_cursor(cursor)
            is_same_time = and_(ATTACHMENTS.c.created == created, ATTACHMENTS.c.id < id)
            query = query.where(ATTACHMENTS.c.created <= created, or_(ATTACHMENTS.c.created < created, is_same_time))
        # Read one row more, to see if another page follows.
        query = query.order_by(ATTACHMENTS.c.created.desc(), ATTACHMENTS.c.id.desc()).limit(limit + 1)
        attachments = [_parse_row(tuple(row)) for row in connection.execute(query)]
        page = tuple(attachments[:limit])
        next_cursor = encode_cursor(to_micros(page[-1].created), page[-1].id) if len(attachments) > limit else None
        return AttachmentList(attachments=page, next=next_cursor)

    @read_transaction
    def total_bytes(self, connection: Connection, owner: str) -> int:
        """Return the bytes of all attachments of a user."""
        return _read_total(connection, owner).bytes

    @write_transaction
    def delete(self, connection: Connection, owner: str, id: str) -> tuple[str, ...]:
        """Delete an attachment. Return the blob's name if no other attachment uses it."""
        lock_files(connection, owner)
        count, blobs = _delete(connection, and_(ATTACHMENTS.c.owner == owner, ATTACHMENTS.c.id == id))
        if not count:
            raise NotFound(what="attachment", id=id)
        return blobs

    async def delete_unused(self, before: datetime, limit: int) -> tuple[int, tuple[str, ...]]:
        """Delete old attachments that no thread refers to, oldest first. Return their number and the names of unused
        blobs.

        Each call continues where the last one ended. A number below `limit` means that the search reached the end.
        """
        find = partial(find_unused, before=before, limit=limit, after=self._unused_from)
        candidates = await self.database.read(find)
        ids = [candidate.id for candidate in candidates]
        count, blobs = await self.database.write(partial(delete_if_unused, ids=ids)) if ids else (0, ())
        self._unused_from = candidates[-1] if candidates and len(candidates) == limit else AttachmentCursor()
        return count, blobs

    @write_transaction
    def delete_owner_unused(self, connection: Connection, owner: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Delete the attachments of an owner that no thread refers to. Return the names of unused blobs."""
        lock_files(connection, owner)
        is_own = ATTACHMENTS.c.owner == owner
        return _delete(connection, and_(_lock_rows(connection, ids), is_own, ~_is_referenced()))[1]

    @read_transaction
    def find_blobs(self, connection: Connection, names: Sequence[str]) -> frozenset[str]:
        """Return the given blob names that exist."""
        queries = [select(BLOBS.c.name).where(BLOBS.c.name.in_(batch)) for batch in batches(names)]
        return frozenset(name for query in queries for name in connection.execute(query).scalars())

    @write_transaction
    def rename_blob(self, connection: Connection, old: str, new: str) -> None:
        """Rename a blob and update its attachments. An unknown name changes nothing."""
        for owner in connection.execute(select(BLOBS.c.owner).where(BLOBS.c.name == old)).scalars().all():
            lock_files(connection, owner)
            connection.execute(update(BLOBS).where(BLOBS.c.name == old).values(name=new))

    @key_lookup
    def list_refs(self, connection: Connection, thread: str) -> tuple[FileRef, ...]:
        """Return the file of every id that was ever shown in a thread (F4), in the order of the ids."""
        rows = cast(
            "Sequence[tuple[str, bytes, int, str | None, int | None]]", LIST_REFS.rows(connection, {"this": thread})
        )
        return tuple([_parse_ref(*row) for row in sorted(rows, key=lambda row: (row[2], *_sort_key(row[0])))])

    @write_transaction
    def delete_refs(self, connection: Connection, thread: str, response_id: str) -> None:
        """Delete the file ids of a turn that was never shown, because its message continues an earlier turn."""
        ids = [id for (id,) in connection.execute(select(FILE_REFS.c.id).where(FILE_REFS.c.thread == thread))]
        unused = [id for id in ids if id.rpartition("-")[0] == response_id]
        connection.execute(delete(FILE_REFS).where(FILE_REFS.c.thread == thread, FILE_REFS.c.id.in_(unused)))


def lock_attachments(connection: Connection, admission: Admission) -> None:
    """Lock the attachments of a run. Raise InvalidRequest if one does not exist or belongs to another user."""
    # Sorted, so that two transactions that lock several attachments cannot deadlock.
    for id in sorted({ref.attachment for ref in admission.files}):
        if not LOCK_ATTACHMENT.rows(connection, {"this": id, "owner_is": admission.owner}):
            raise InvalidRequest(NOT_SIGNED, where="messages")


def add_refs(connection: Connection, admission: Admission) -> None:
    """Store the attachment of each file id of a run."""
    run_columns = {"thread": admission.thread, "created": to_micros(admission.created)}
    rows = [
        {
            **run_columns,
            "id": ref.id,
            "body": dump({"name": ref.name, "kind": ref.kind, "mimeType": ref.mime_type}),
            "attachment": ref.attachment,
        }
        for ref in admission.files
    ]
    ADD_REF.run_many(connection, rows)


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
    return _delete(connection, _lock_rows(connection, connection.execute(batch).scalars().all()))


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
    """Delete the given attachments, except any that a thread refers to by now."""
    owners = connection.execute(select(ATTACHMENTS.c.owner).where(ATTACHMENTS.c.id.in_(ids))).scalars()
    lock_files(connection, *set(owners))
    return _delete(connection, and_(_lock_rows(connection, ids), ~_is_referenced()))


def _lock_rows(connection: Connection, ids: Sequence[str]) -> ColumnElement[bool]:
    """Lock the given attachments against new references."""
    is_listed = ATTACHMENTS.c.id.in_(ids)
    # Use the lock order of admissions, to prevent deadlocks.
    connection.execute(select(ATTACHMENTS.c.id).where(is_listed).order_by(ATTACHMENTS.c.id).with_for_update())
    return is_listed


def _is_referenced() -> ColumnElement[bool]:
    return exists().where(FILE_REFS.c.attachment == ATTACHMENTS.c.id)


def _delete(connection: Connection, condition: ColumnElement[bool]) -> tuple[int, tuple[str, ...]]:
    """Delete attachments of locked users, and the rows of unused blobs.

    Return the number of attachments and the blob names.
    """
    columns = (ATTACHMENTS.c.owner, ATTACHMENTS.c.size, ATTACHMENTS.c.blob)
    rows = connection.execute(delete(ATTACHMENTS).where(condition).returning(*columns)).all()
    if not rows:
        return 0, ()
    totals: dict[str, Total] = {}
    for owner, size, _blob in rows:
        less = totals.get(owner, Total())
        totals[owner] = Total(less.bytes + size, less.files + 1)
    owners = [{"owner_is": owner, "less_bytes": less.bytes, "less_files": less.files} for owner, less in totals.items()]
    LOWER_TOTAL.run_many(connection, owners)
    DELETE_TOTAL.run_many(connection, [{"owner_is": owner} for owner in totals])
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


def _parse_ref(id: str, body: bytes, _created: int, attachment: str | None, size: int | None) -> FileRef:
    fields = load_object(body) or {}
    mime_type = fields.get("mimeType")
    return FileRef(
        id=id,
        attachment=attachment or "",
        name=str(fields.get("name", "")),
        kind=cast("FileKind", fields.get("kind", "document")),
        mime_type=mime_type if isinstance(mime_type, str) else None,
        size=size or 0,
        is_there=size is not None,
    )


def _sort_key(id: str) -> tuple[str, int, str]:
    """Return a sort key that puts `r-2` before `r-10`."""
    prefix, _, number = id.rpartition("-")
    return prefix, int(number) if number.isdecimal() else 0, id
