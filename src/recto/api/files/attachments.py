"""Routes of attachments (P9): upload, list, read, delete. Attachments of other users do not exist here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.file_input import FileInput
from recto.api.backend import Backend, agent_named, backend_of, json_answer, user_of
from recto.api.connections import body_of
from recto.api.files.multipart import STOPPING, MultipartForm
from recto.api.files.uploads import Intake, RefusedFile, Taken, UploadedFile, check_length, form_limits
from recto.api.parameters import Cursor, PageLimit, in_path, in_query, stored_id
from recto.api.problems import refuse, refuse_http
from recto.api.route import FORM_MEDIA, TIME, Route
from recto.conversation.message_files import Attachment
from recto.conversation.history import time_text
from recto.errors import RectoError, WireError

ATTACHMENTS = "/api/v1/agent/attachments"
ONE = f"{ATTACHMENTS}/{{id}}"
AttachmentId = Annotated[str, in_path("The attachment's id, a UUID.")]
UploadAgent = Annotated[str | None, in_query("The agent the files are for; else the default.", max_length=256)]


class AttachmentShape(TypedDict):
    """An uploaded file. Everybody with its `url` may read it until `expiresAt`."""

    id: str
    name: str
    type: Literal["document", "image", "audio", "video"]
    mimeType: str
    size: int
    url: str
    expiresAt: str


class RefusedFileShape(TypedDict):
    """A rejected file and the reason."""

    name: str
    error: str
    code: str


class UploadForm(BaseModel):
    """Files, preceded by the name of their agent. Every part with a filename is a file."""

    agent: str | None = None
    file: list[Annotated[str, Field(json_schema_extra={"format": "binary"})]]


class UploadedShape(TypedDict):
    """The result for each file, in the order of the form."""

    attachments: Sequence[AttachmentShape | RefusedFileShape]


class AttachmentsShape(TypedDict):
    """Attachments, newest first. `next` is the cursor of the next page."""

    attachments: Sequence[AttachmentShape]
    next: str | None


class GoneShape(TypedDict):
    """The deleted item."""

    id: str


ATTACHMENT = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e12"
URL = (
    f"https://recto.example/api/v1/agent/files/{ATTACHMENT}/report.pdf"
    "?signature=1778846400.k1.kq3vT0m8Yx5Zr1Wc7Nf2Bd9LpQaJhUeS"
)
ATTACHMENT_EXAMPLE: AttachmentShape = {
    "id": ATTACHMENT,
    "name": "report.pdf",
    "type": "document",
    "mimeType": "application/pdf",
    "size": 48213,
    "url": URL,
    "expiresAt": TIME,
}
REFUSED_EXAMPLE: RefusedFileShape = {
    "name": "empty.txt",
    "error": "it is empty; send a file with something in it",
    "code": "empty",
}
UPLOADED_EXAMPLE: UploadedShape = {"attachments": [ATTACHMENT_EXAMPLE, REFUSED_EXAMPLE]}
ATTACHMENTS_EXAMPLE: AttachmentsShape = {"attachments": [ATTACHMENT_EXAMPLE], "next": None}
GONE_EXAMPLE: GoneShape = {"id": ATTACHMENT}


async def upload_attachments(request: Request, agent: UploadAgent = None) -> UploadedShape | Response:
    """Upload files as a form: every part with a filename is a file.

    A text field `agent` before them, or `agent` in the query, names the agent whose file input decides what is
    accepted. The response has one entry per file, in order. A rejected file has its reason; the others are stored.
    """
    backend = backend_of(request)
    try:
        check_length(request.headers.get("content-length"), backend.files.rules)
        taken = await _take(request, agent)
    except ClientDisconnect:
        # The client has disconnected.
        return Response(status_code=400)
    except asyncio.CancelledError:
        # Only a stopping server cancels a request.
        return _closing(refuse_http(HTTPException(503, STOPPING)))
    except HTTPException as error:
        return _closing(refuse_http(error))
    except RectoError as error:
        return _closing(refuse(request, error))
    uploaded: UploadedShape = {"attachments": [_entry(backend, entry) for entry in taken.entries]}
    return uploaded) if taken.is_whole else _closing(json_answer(uploaded)


async def _take(request: Request, agent: str | None) -> Taken:
    backend, kind = backend_of(request), request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != FORM_MEDIA:
        raise WireError(where="content-type", problem=f"is {kind[:64]!r}; send files as {FORM_MEDIA}")
    owner, rules = user_of(request).name, backend.files.rules
    async with aclosing(body_of(request)) as body:
        form = MultipartForm(body, kind, form_limits(rules))
        intake = Intake(
            files=backend.files.attachments,
            under_way=backend.files.uploads,
            owner=owner,
            used=lambda: backend.store.files.total_bytes(owner),
            rules=rules,
            agent=agent,
            input_of=lambda name: _file_input(backend, name),
        )
        with backend.files.uploads.one_more(owner, rules, form):
            return await intake.take(form)


def _file_input(backend: Backend, name: str | None) -> FileInput:
    return backend.agents.require(backend.agents.default if name is None else name, "agent").file_input


def _closing(answer: Response) -> Response:
    """Return the response with the connection closed, because the rest of the form stays unread."""
    answer.headers["connection"] = "close"
    return answer


async def list_attachments(request: Request, cursor: Cursor = None, limit: PageLimit = 50) -> AttachmentsShape:
    """List your attachments, newest first, each with a new url."""
    backend = backend_of(request)
    found = await backend.store.files.list_page(user_of(request).name, cursor, limit)
    rows = [attachment_row(backend, attachment) for attachment in found.attachments]
    return {"attachments": rows, "next": found.next}


async def get_attachment(request: Request, id: AttachmentId) -> AttachmentShape:
    """Return an attachment with a new url."""
    backend = backend_of(request)
    return json_answer(
        attachment_row(backend, await backend.files.attachments.find(user_of(request).name, stored_id(id, "attachment")))
    )


async def delete_attachment(request: Request, id: AttachmentId) -> GoneShape:
    """Delete an attachment permanently. Its urls stop working; threads show it as deleted."""
    known = stored_id(id, "attachment")
    await backend_of(request).files.attachments.delete(user_of(request).name, known)
    return {"id": known}


def _entry(backend: Backend, entry: UploadedFile) -> AttachmentShape | RefusedFileShape:
    if isinstance(entry, RefusedFile):
        return {"name": entry.name, "error": entry.error, "code": entry.code}
    return attachment_row(backend, entry)


def attachment_row(backend: Backend, attachment: Attachment) -> AttachmentShape:
    """Return an attachment for its owner, with a new url."""
    # Urls contain whole seconds.
    expires = backend.clock().replace(microsecond=0) + timedelta(seconds=backend.files.rules.url_seconds)
    return {
        "id": attachment.id,
        "name": attachment.name,
        "type": attachment.kind,
        "mimeType": attachment.mime_type,
        "size": attachment.size,
        "url": backend.files.signer.url(attachment.id, attachment.name, expires),
        "expiresAt": time_text(expires),
    }


ROUTES = (
    Route("POST", ATTACHMENTS, upload_attachments, "attachments", body=UploadForm, media=FORM_MEDIA, errors=(413, 422)),
    Route("GET", ATTACHMENTS, list_attachments, "attachments", errors=(422,)),
    Route("GET", ONE, get_attachment, "attachments", errors=(404,)),
    Route("DELETE", ONE, delete_attachment, "attachments", errors=(404,)),
)
