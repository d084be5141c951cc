"""SQL of file ids: the attachment of each id, for the life of the thread (F4). A row is written once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlalchemy import Connection, bindparam, delete, select

from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.json import dump, load_object
from recto.conversation.message_files import FileRef
from recto.conversation.messages import FileKind
from recto.errors import Refused
from recto.store.ports import Admission
from recto.store.schema import ATTACHMENTS, FILE_REFS, to_micros
from recto.store.statement import Statement, insert_missing

# Locks an attachment against deletion until the run is stored.
LOCK_ATTACHMENT = Statement(
    select(ATTACHMENTS.c.id)
    .where(ATTACHMENTS.c.id == bindparam("this"), ATTACHMENTS.c.owner == bindparam("owner_is"))
    .with_for_update(read=True, key_share=True)
)
ADD = insert_missing(FILE_REFS, ("thread", "id", "body", "created", "attachment"))
REFS = Statement(
    select(FILE_REFS.c.id, FILE_REFS.c.body, FILE_REFS.c.created, FILE_REFS.c.attachment, ATTACHMENTS.c.size)
    .join(ATTACHMENTS, ATTACHMENTS.c.id == FILE_REFS.c.attachment, isouter=True)
    .where(FILE_REFS.c.thread == bindparam("this"))
)


def lock_attachments(connection: Connection, admission: Admission) -> None:
    """Lock the attachments of a run. Raise Refused if one does not exist or belongs to another user."""
    # Sorted, so that two transactions that lock several attachments cannot deadlock.
    for id in sorted({ref.attachment for ref in admission.files}):
        if not LOCK_ATTACHMENT.rows(connection, {"this": id, "owner_is": admission.owner}):
            raise Refused(NOT_SIGNED, where="messages")


def add_refs(connection: Connection, admission: Admission) -> None:
    """Store the attachment of each file id of a run."""
    run_columns = {"thread": admission.thread, "created": to_micros(admission.created)}
    rows = [
        {**run_columns, "id": ref.id, "body": _encode_ref(ref), "attachment": ref.attachment} for ref in admission.files
    ]
    ADD.run_many(connection, rows)


def _encode_ref(ref: FileRef) -> bytes:
    return dump({"name": ref.name, "kind": ref.kind, "mimeType": ref.mime_type})


def list_refs(connection: Connection, thread: str) -> tuple[FileRef, ...]:
    """Return the files of every id that was ever shown in a thread (F4), in the order of the ids."""
    rows = cast("Sequence[tuple[str, bytes, int, str | None, int | None]]", REFS.rows(connection, {"this": thread}))
    return tuple([_parse_row(*row) for row in sorted(rows, key=lambda row: (row[2], *_sort_key(row[0])))])


def delete_unused(connection: Connection, thread: str, response_id: str) -> None:
    """Delete the file ids of a turn that was never shown: its message continues an earlier turn."""
    ids = [id for (id,) in connection.execute(select(FILE_REFS.c.id).where(FILE_REFS.c.thread == thread))]
    unused = [id for id in ids if id.rpartition("-")[0] == response_id]
    connection.execute(delete(FILE_REFS).where(FILE_REFS.c.thread == thread, FILE_REFS.c.id.in_(unused)))


def _sort_key(id: str) -> tuple[str, int, str]:
    """Return a sort key that puts `r-2` before `r-10`."""
    prefix, _, number = id.rpartition("-")
    return prefix, int(number) if number.isdecimal() else 0, id


def _parse_row(id: str, body: bytes, _created: int, attachment: str | None, size: int | None) -> FileRef:
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
