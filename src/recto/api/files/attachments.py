"""Routes of attachments (P9): upload, list, read, delete. A user cannot see the attachments of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.file_input import FileInput
from recto.api.backend import Backend, FileService, backend_of, user_of
from recto.api.connections import body_of
from recto.api.files.multipart import STOPPING, FormPart, MultipartForm
from recto.api.files.uploads import BEYOND_BYTES, check_length, form_limits
from recto.api.problems import error_problem, http_problem
from recto.api.route import FORM_MEDIA, JSON_MEDIA, Cursor, PageLimit, Route, in_path, in_query, stored_id
from recto.conversation.history import time_text
from recto.conversation.json import dump
from recto.conversation.message_files import Attachment
from recto.errors import FileRefused, NotFound, RectoError, WireError
from recto.files.file_names import safe_name
from recto.files.ports import Upload

AGENT = "agent"
TEXT_BYTES = 65_536
NO_ROOM = "your other active uploads use the rest of your quota. Send it again after they end"
ATTACHMENTS = "/api/v1/agent/attachments"
ONE = f"{ATTACHMENTS}/{{id}}"
AttachmentId = Annotated[str, in_path("The attachment's id, a UUID.")]
UploadAgent = Annotated[str | None, in_query("The agent for the files; by default the default agent.", max_length=256)]


@dataclass(frozen=True, kw_only=True)
class RefusedFile:
    """A rejected file of a form."""

    name: str
    error: str
    code: str


UploadedFile: TypeAlias = Attachment | RefusedFile


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
        entries, is_whole = await _store_form(request, agent)
    except ClientDisconnect:
        # The client has disconnected and never receives this response.
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
        for entry in entries
    ]
    if is_whole:
        return {"attachments": rows}
    return _closing(Response(dump({"attachments": rows}), media_type=JSON_MEDIA))


async def _store_form(request: Request, agent: str | None) -> tuple[Sequence[UploadedFile], bool]:
    """Store or reject each file of a form. Returns the results in order, and True if it read the whole form.

    An error, such as an incomplete form, deletes the files that were already stored.
    """
    backend, owner, kind = backend_of(request), user_of(request).name, request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != FORM_MEDIA:
        raise WireError(where="content-type", problem=f"is {kind[:64]!r}. Send files as {FORM_MEDIA}")
    async with aclosing(body_of(request)) as body:
        form = MultipartForm(body, kind, form_limits(backend.files.rules))
        with backend.files.uploads.admit(owner, backend.files.rules, form):
            return await _store_parts(backend, owner, form, agent)


async def _store_parts(
    backend: Backend, owner: str, form: MultipartForm, agent: str | None
) -> tuple[Sequence[UploadedFile], bool]:
    agents, rules, entries = backend.agents, backend.files.rules, list[UploadedFile]()
    allowed = agents.require(agents.default if agent is None else agent, "agent").file_input
    try:
        async with aclosing(form.parts()) as parts:
            async for part in parts:
                if part.heading.filename is None:
                    agent = await _agent_in(part, agent, has_files=bool(entries))
                    allowed = agents.require(agents.default if agent is None else agent, "agent").file_input
                    continue
                entries.append(await _store_file(backend, owner, part, allowed, len(entries)))
                limits = [limit for limit in (rules.upload_bytes, allowed.max_bytes) if limit]
                if not await part.skip(min(limits) + BEYOND_BYTES if limits else None):
                    return entries, False
        if not entries:
            raise WireError(where="body", problem="contains no file. Send each file as a part with a filename")
        return entries, True
    except BaseException:
        for attachment in [entry for entry in entries if isinstance(entry, Attachment)]:
            # The owner may have deleted the attachment in the meantime.
            with suppress(NotFound):
                await backend.files.attachments.delete(owner, attachment.id)
        raise


async def _agent_in(part: FormPart, agent: str | None, *, has_files: bool) -> str | None:
    """Return the agent that the text field `part` names. Return `agent` for any other field."""
    text = await part.text(TEXT_BYTES)
    if part.heading.name != AGENT:
        return agent
    if has_files:
        problem = "must come before the files in the form, because it decides what files are accepted"
        raise WireError(where=AGENT, problem=problem)
    if agent is not None and agent != text:
        raise WireError(where=AGENT, problem=f"is named twice, as {agent[:64]!r} and {text[:64]!r}. Name one agent")
    return text


async def _store_file(backend: Backend, owner: str, part: FormPart, allowed: FileInput, place: int) -> UploadedFile:
    """Store one file of a form, or reject it with a reason."""
    service, rules, name = backend.files, backend.files.rules, part.heading.filename or ""
    if place >= rules.files:
        problem = f"a form may contain up to {rules.files} files. Send this one in another form"
        return RefusedFile(name=safe_name(name), error=problem, code="too_many")
    room = max(0, rules.user_bytes - await backend.store.files.total_bytes(owner)) if rules.user_bytes else None
    kind = part.heading.content_type
    upload = Upload(owner=owner, name=name, allowed=allowed, declared_type=kind, room=room)
    try:
        with service.uploads.reserve(owner) as reserve:

            async def pieces() -> AsyncGenerator[bytes]:
                async for piece in part.pieces():
                    # The storage rejects a file that exceeds the quota by itself, with another reason.
                    if room is not None and reserve(len(piece)) > room >= part.size:
                        raise FileRefused(NO_ROOM, code="quota")
                    yield piece

            return await service.attachments.receive(upload, pieces())
    except FileRefused as error:
        return RefusedFile(name=safe_name(name), error=str(error), code=error.code)


def _closing(response: Response) -> Response:
    """Make the response close the connection, because the rest of the form stays unread."""
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
    """Return an attachment as its owner sees it, with a new url."""
    # Drop the microseconds, because urls contain whole seconds.
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
