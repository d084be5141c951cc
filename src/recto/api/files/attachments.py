"""Routes of attachments (P9): upload, list, look at, delete. Somebody else's attachment is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from recto.agents.file_input import FileInput
from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.files.file_shapes import (
    ATTACHMENT_EXAMPLE,
    ATTACHMENTS_EXAMPLE,
    GONE_EXAMPLE,
    UPLOADED_EXAMPLE,
    AttachmentShape,
    AttachmentsShape,
    GoneShape,
    UploadedShape,
    UploadForm,
)
from recto.api.files.multipart import STOPPING, MultipartForm
from recto.api.files.uploads import Intake, RefusedFile, Taken, UploadedFile, check_length
from recto.api.problems import refuse, refuse_http
from recto.api.route import Route
from recto.api.threads.routes import Cursor, PageLimit
from recto.conversation.attachment import Attachment
from recto.conversation.history import time_text
from recto.conversation.input.input_rules import UUID
from recto.conversation.json import Json
from recto.errors import NotFound, RectoError, WireError

ATTACHMENTS = "/api/v1/agent/attachments"
FORM = "multipart/form-data"
AttachmentId = Annotated[str, Path(description="The attachment's id, a UUID.")]
UploadAgent = Annotated[str | None, Query(max_length=256, description="The agent the files are for; else the default.")]


async def upload_attachments(request: Request, agent: UploadAgent = None) -> Response:
    """Upload files as a form: every part with a filename is one.

    A text field `agent` before them, or `agent` in the query, names the agent they are for, which decides what is
    taken. Each file has its own entry in the answer, in order; one that is refused says why, and the others are kept.
    """
    backend = backend_of(request)
    try:
        check_length(request.headers.get("content-length"), backend.uploads)
        taken = await _take(request, agent)
    except ClientDisconnect:
        # Nobody is there to be told.
        return Response(status_code=400)
    except asyncio.CancelledError:
        # Nobody cancels a request but a server that stops.
        return _closing(await refuse_http(request, HTTPException(503, STOPPING)))
    except HTTPException as error:
        return _closing(await refuse_http(request, error))
    except RectoError as error:
        return _closing(await refuse(request, error))
    answer = json_answer({"attachments": [_entry(backend, entry) for entry in taken.entries]})
    return answer if taken.is_whole else _closing(answer)


async def _take(request: Request, agent: str | None) -> Taken:
    backend, kind = backend_of(request), request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != FORM:
        raise WireError(where="content-type", problem=f"is {kind[:64]!r}; send files as {FORM}")
    owner, rules = user_of(request).name, backend.uploads
    form = MultipartForm(request.stream(), kind, rules.form_limits)
    with backend.uploading.one_more(owner, rules, form):
        intake = Intake(
            files=backend.files,
            under_way=backend.uploading,
            owner=owner,
            used=lambda: backend.store.attachment_bytes(owner),
            rules=rules,
            agent=agent,
            input_of=lambda name: _file_input(backend, name),
        )
        return await intake.take(form)


def _file_input(backend: Backend, name: str | None) -> FileInput:
    found = backend.agents.get(backend.agent if name is None else name)
    if found is None:
        problem = f"there is no agent {(name or backend.agent)[:64]!r}; known: {', '.join(backend.agents)}"
        raise WireError(where="agent", problem=problem)
    return found.file_input


def _closing(answer: Response) -> Response:
    """An answer that ends the connection: what is left of the form is not read."""
    answer.headers["connection"] = "close"
    return answer


async def list_attachments(request: Request, cursor: Cursor = None, limit: PageLimit = 50) -> Response:
    """Your attachments, newest first, each with a new url."""
    backend = backend_of(request)
    found = await backend.store.list_attachments(user_of(request).name, cursor, limit)
    rows = [attachment_row(backend, attachment) for attachment in found.attachments]
    return json_answer({"attachments": rows, "next": found.next})


async def get_attachment(request: Request, id: AttachmentId) -> Response:
    """An attachment, with a new url."""
    backend = backend_of(request)
    return json_answer(attachment_row(backend, await backend.files.find(user_of(request).name, _attachment_id(id))))


async def delete_attachment(request: Request, id: AttachmentId) -> Response:
    """Delete an attachment for good. Its urls end at once; threads that show it say that it is gone."""
    known = _attachment_id(id)
    await backend_of(request).files.delete(user_of(request).name, known)
    return json_answer({"id": known})


def _attachment_id(id: str) -> str:
    """The id of an attachment as it is stored. What is no UUID is no attachment's."""
    if not UUID.fullmatch(id):
        raise NotFound(what="attachment", id=id)
    return id.lower()


def _entry(backend: Backend, entry: UploadedFile) -> Mapping[str, Json]:
    if isinstance(entry, RefusedFile):
        return {"name": entry.name, "error": entry.error, "code": entry.code}
    return attachment_row(backend, entry)


def attachment_row(backend: Backend, attachment: Attachment) -> Mapping[str, Json]:
    """An attachment as its owner sees it, with a url signed now."""
    # A url tells whole seconds.
    expires = backend.clock().replace(microsecond=0) + timedelta(seconds=backend.uploads.url_seconds)
    return {
        "id": attachment.id,
        "name": attachment.name,
        "type": attachment.kind,
        "mimeType": attachment.mime_type,
        "size": attachment.size,
        "url": backend.signer.url(attachment.id, attachment.name, expires),
        "expiresAt": time_text(expires),
    }


ONE = f"{ATTACHMENTS}/{{id}}"
ROUTES = (
    Route(
        method="POST",
        path=ATTACHMENTS,
        handler=upload_attachments,
        tag="attachments",
        body=UploadForm,
        media=FORM,
        answer=UploadedShape,
        refusals=(413, 422),
        examples={"answer": UPLOADED_EXAMPLE},
    ),
    Route(
        method="GET",
        path=ATTACHMENTS,
        handler=list_attachments,
        tag="attachments",
        answer=AttachmentsShape,
        refusals=(422,),
        examples={"answer": ATTACHMENTS_EXAMPLE},
    ),
    Route(
        method="GET",
        path=ONE,
        handler=get_attachment,
        tag="attachments",
        answer=AttachmentShape,
        refusals=(404,),
        examples={"answer": ATTACHMENT_EXAMPLE},
    ),
    Route(
        method="DELETE",
        path=ONE,
        handler=delete_attachment,
        tag="attachments",
        answer=GoneShape,
        refusals=(404,),
        examples={"answer": GONE_EXAMPLE},
    ),
)
