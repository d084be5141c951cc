"""SQL of file ids: which attachment each stands for, for the life of a thread (F4). A row is written once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlalchemy import Connection, bindparam, delete, select

from recto.conversation.attachment import FileRef
from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.json import dump, load_object
from recto.conversation.messages import FileKind
from recto.errors import Refused
from recto.store.ports import Admission
from recto.store.schema import ATTACHMENTS, FILE_REFS, micros
from recto.store.statement import Statement, insert_missing

# Held, so that nobody deletes it before the run is stored.
HOLD = Statement(
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


def hold_files(connection: Connection, admission: Admission) -> None:
    """Refuse a run that names an attachment which is gone, or somebody else's."""
    # Always in this order, so that two who hold several cannot wait for each other.
    for id in sorted({ref.attachment for ref in admission.files}):
        if not HOLD.rows(connection, {"this": id, "owner_is": admission.owner}):
            raise Refused(NOT_SIGNED, where="messages")


def add_refs(connection: Connection, admission: Admission) -> None:
    """Write down what each file id of a run stands for."""
    of_run = {"thread": admission.thread, "created": micros(admission.created)}
    rows = [{**of_run, "id": ref.id, "body": _body(ref), "attachment": ref.attachment} for ref in admission.files]
    ADD.many(connection, rows)


def _body(ref: FileRef) -> bytes:
    return dump({"name": ref.name, "kind": ref.kind, "mimeType": ref.mime_type})


def refs_of(connection: Connection, thread: str) -> tuple[FileRef, ...]:
    """The files of a thread, in the order their ids were given in."""
    rows = cast("Sequence[tuple[str, bytes, int, str | None, int | None]]", REFS.rows(connection, {"this": thread}))
    return tuple([_ref(*row) for row in sorted(rows, key=lambda row: (row[2], *_order(row[0])))])


def forget(connection: Connection, thread: str, response_id: str) -> None:
    """Take back the ids of a turn that was never shown. Those of other turns stay for ever."""
    mine = [id for (id,) in connection.execute(select(FILE_REFS.c.id).where(FILE_REFS.c.thread == thread))]
    never_shown = [id for id in mine if id.rpartition("-")[0] == response_id]
    connection.execute(delete(FILE_REFS).where(FILE_REFS.c.thread == thread, FILE_REFS.c.id.in_(never_shown)))


def _order(id: str) -> tuple[str, int, str]:
    """`r-2` stands before `r-10`."""
    prefix, _, number = id.rpartition("-")
    return prefix, int(number) if number.isdecimal() else 0, id


def _ref(id: str, body: bytes, _created: int, attachment: str | None, size: int | None) -> FileRef:
    said = load_object(body) or {}
    mime_type = said.get("mimeType")
    return FileRef(
        id=id,
        attachment=attachment or "",
        name=str(said.get("name", "")),
        kind=cast("FileKind", said.get("kind", "document")),
        mime_type=mime_type if isinstance(mime_type, str) else None,
        size=size or 0,
        is_there=size is not None,
    )
