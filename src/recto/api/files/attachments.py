"""Routes of attachments (P9): upload, list, read, delete. A user cannot see the attachments of others."""

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

from recto.api.backend import FileService, backend_of, user_of
from recto.api.connections import body_of
from recto.api.files.multipart import STOPPING, MultipartForm
from recto.api.files.uploads import FormUpload, RefusedFile, UploadResult, check_length, form_limits
from recto.api.problems import error_problem, http_problem
from recto.api.route import FORM_MEDIA, JSON_MEDIA, Cursor, PageLimit, Route, in_path, in_query, stored_id
from recto.conversation.history import time_text
from recto.conversation.json import dump
from recto.conversation.message_files import Attachment
from recto.errors import RectoError, WireError

ATTACHMENTS = "/api/v1/agent/attachments"
ONE = f"{ATTACHMENTS}/{{id}}"
AttachmentId = Annotated[str, in_path("The attachment's id, a UUID.")]
UploadAgent = Annotated[str | None, in_query("The agent for the files; by default the default agent.", max_length=256)]


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


async def upload_attachments(request: Request, agent: UploadAgent = None) -> UploadedShape | Response:
    """Upload files as a form: every part with a filename is a file.

    A text field `agent` before them, or `agent` in the query, names the agent whose file input decides what is
    accepted. The response has one entry per file, in order. A rejected file has its reason; the others are stored.
    """
    backend = backend_of(request)
    try:
        check_length(request.headers.get("content-length"), backend.files.rules)
        result = await _store_form(request, agent)
    except ClientDisconnect:
        # The client has disconnected.
        return Response(status_code=400)
    except asyncio.CancelledError:
        # Only a stopping server cancels a request.
        return _closing(http_problem(HTTPException(503, STOPPING)))
    except HTTPException as error:
        return _closing(http_problem(error))
    except RectoError as error:
        return _closing(error_problem(request, error))
    rows: list[AttachmentShape | RefusedFileShape] = [
        {"name": entry.name, "error": entry.error, "code": entry.code}
        if isinstance(entry, RefusedFile)
        else attachment_row(backend.files, entry)
        for entry in result.entries
    ]
    if result.is_whole:
        return {"attachments": rows}
    return _closing(Response(dump({"attachments": rows}), media_type=JSON_MEDIA))


async def _store_form(request: Request, agent: str | None) -> UploadResult:
    backend, kind = backend_of(request), request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != FORM_MEDIA:
        raise WireError(where="content-type", problem=f"is {kind[:64]!r}. Send files as {FORM_MEDIA}")
    owner, rules, agents = user_of(request).name, backend.files.rules, backend.agents
    async with aclosing(body_of(request)) as body:
        form = MultipartForm(body, kind, form_limits(rules))
        upload = FormUpload(
            files=backend.files.attachments,
            active=backend.files.uploads,
            owner=owner,
            stored_bytes=lambda: backend.store.files.total_bytes(owner),
            rules=rules,
            agent=agent,
            input_of=lambda name: agents.require(agents.default if name is None else name, "agent").file_input,
        )
        with backend.files.uploads.admit(owner, rules, form):
            return await upload.store(form)


def _closing(response: Response) -> Response:
    """Return the response with the connection closed, because the rest of the form stays unread."""
    response.headers["connection"] = "close"
    return response


async def list_attachments(request: Request, cursor: Cursor = None, limit: PageLimit = 50) -> AttachmentsShape:
    """List your attachments, newest first, each with a new url."""
    backend = backend_of(request)
    page = await backend.store.files.list_page(user_of(request).name, cursor, limit)
    rows = [attachment_row(backend.files, attachment) for attachment in page.attachments]
    return {"attachments": rows, "next": page.next}


async def get_attachment(request: Request, id: AttachmentId) -> AttachmentShape:
    """Return an attachment with a new url."""
    files = backend_of(request).files
    attachment = await files.attachments.find(user_of(request).name, stored_id(id, "attachment"))
    return attachment_row(files, attachment)


async def delete_attachment(request: Request, id: AttachmentId) -> GoneShape:
    """Delete an attachment permanently. Its urls stop working; threads show it as deleted."""
    attachment = stored_id(id, "attachment")
    await backend_of(request).files.attachments.delete(user_of(request).name, attachment)
    return {"id": attachment}


def attachment_row(files: FileService, attachment: Attachment) -> AttachmentShape:
    """Return an attachment for its owner, with a new url."""
    # Urls contain whole seconds.
    expires = files.clock().replace(microsecond=0) + timedelta(seconds=files.rules.url_seconds)
    return {
        "id": attachment.id,
        "name": attachment.name,
        "type": attachment.kind,
        "mimeType": attachment.mime_type,
        "size": attachment.size,
        "url": files.signer.url(attachment.id, attachment.name, expires),
        "expiresAt": time_text(expires),
    }


ROUTES = (
    Route("POST", ATTACHMENTS, upload_attachments, "attachments", body=UploadForm, media=FORM_MEDIA, errors=(413, 422)),
    Route("GET", ATTACHMENTS, list_attachments, "attachments", errors=(422,)),
    Route("GET", ONE, get_attachment, "attachments", errors=(404,)),
    Route("DELETE", ONE, delete_attachment, "attachments", errors=(404,)),
)
