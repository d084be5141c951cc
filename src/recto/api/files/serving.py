"""Files under signed urls, whole or by range. Headers keep browsers from executing them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from recto.api.access.audit import audit
from recto.api.backend import FileService, backend_of
from recto.api.problems import problem
from recto.api.route import Route, in_path
from recto.conversation.file_formats import served_as
from recto.conversation.message_files import Attachment
from recto.errors import NotFound
from recto.files.file_names import content_disposition
from recto.files.signing import FILES, expiry

# Lifetime of the storage url that a reader is redirected to.
LINK_SECONDS = 60.0
NO_FILE = "No file at this URL: the URL is wrong or has expired, or the file was deleted. Request a new URL."
RANGE = re.compile(r"bytes=[ \t]*([0-9]*)-([0-9]*)[ \t]*", re.IGNORECASE)
# Maximum digits of a number to parse. Longer numbers exceed any file size.
DIGITS = 18
TAG = re.compile(r'(?:W/)?("[^"]*")')
# No sandbox for PDF: browsers' PDF viewers do not open in one, and run a PDF's scripts in their own sandbox.
PDF, POLICY, SANDBOX = "application/pdf", "default-src 'none'", "default-src 'none'; sandbox"
SAFE = {
    "accept-ranges": "bytes",
    # Other sites may embed a file whose url they have.
    "cross-origin-resource-policy": "cross-origin",
}
FileId = Annotated[str, in_path("The attachment's id.")]
FileName = Annotated[str, in_path("The attachment's name, as in the URL.")]


@dataclass(frozen=True, kw_only=True)
class ByteRange:
    """The bytes from `start` up to but not including `end`."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Whole:
    """All bytes: no valid range was requested."""


@dataclass(frozen=True, kw_only=True)
class Outside:
    """A range beyond the end of the file."""


RequestedRange: TypeAlias = ByteRange | Whole | Outside


def requested_range(header: str | None, size: int) -> RequestedRange:
    """Return the bytes a Range header requests. Multiple ranges, other units and invalid headers mean all bytes."""
    match = RANGE.fullmatch(header) if header else None
    if not match or not (match[1] or match[2]):
        return Whole()
    if not match[1]:
        last = _number(match[2])
        return ByteRange(start=max(0, size - last), end=size) if last and size else Outside()
    start, end = _number(match[1]), _number(match[2]) + 1 if match[2] else size
    if match[2] and end <= start:
        return Whole()
    return ByteRange(start=start, end=min(end, size)) if start < size else Outside()


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= DIGITS else 10**DIGITS


def matches_tag(header: str | None, tag: str) -> bool:
    """Return True if an If-None-Match header contains the tag, or `*`."""
    return header is not None and (header.strip() == "*" or tag in TAG.findall(header))


async def get_file(request: Request, id: FileId, name: FileName) -> Response:
    """Return a file by its signed url; no credential is needed. Supports `Range`."""
    del id, name  # The signature covers both.
    files = backend_of(request).files
    target: bytes = request.scope["raw_path"] + b"?" + request.scope["query_string"]
    try:
        attachment_id = files.signer.read_target(target, files.clock())
        if attachment_id is None:
            raise NotFound(what="file", id="")
        attachment = await files.attachments.get(attachment_id)
        # Clients may cache the response until its URL expires.
        seconds = max(0, expiry(request.query_params["signature"]) - int(files.clock().timestamp()) - 1)
        media, is_inline = served_as(attachment.mime_type)
        headers = {
            **SAFE,
            "content-type": media,
            "content-security-policy": POLICY if media == PDF else SANDBOX,
            "content-disposition": content_disposition(attachment.name, is_inline),
            "cache-control": f"private, max-age={seconds}",
            "etag": f'"{attachment.sha256}"',
        }
        if matches_tag(request.headers.get("if-none-match"), headers["etag"]):
            return Response(status_code=304, headers=headers)
        if request.method == "HEAD":
            return Response(headers={**headers, "content-length": str(attachment.size)})
        if files.rules.redirects and (link := await files.attachments.link(attachment, LINK_SECONDS)):
            return RedirectResponse(link, headers={"cache-control": "no-store"})
        condition = request.headers.get("if-range")
        # Send the whole file if If-Range names another version.
        is_other = condition is not None and condition.strip() != headers["etag"]
        byte_range = Whole() if is_other else requested_range(request.headers.get("range"), attachment.size)
        return await _bytes(files, attachment, headers, byte_range)
    except NotFound:
        audit(request, "no_file", status=404)
        return problem(404, "not_found", NO_FILE)


async def _bytes(
    files: FileService, attachment: Attachment, headers: Mapping[str, str], byte_range: RequestedRange
) -> Response:
    size = attachment.size
    match byte_range:
        case Outside():
            error = problem(416, "wrong_range", f"The range is beyond the end of the file, which has {size:,} bytes.")
            error.headers["content-range"] = f"bytes */{size}"
            return error
        case Whole():
            start, end, status, more = 0, size, 200, {}
        case ByteRange(start=start, end=end):
            status, more = 206, {"content-range": f"bytes {start}-{end - 1}/{size}"}
    pieces = files.attachments.read(attachment, start, end)
    # The first read reports errors before the response starts.
    first = await anext(pieces, b"")
    return _FileResponse(first, pieces, status, {**headers, **more, "content-length": str(end - start)})


class _FileResponse(StreamingResponse):
    """A response that closes the reader, even if sending fails."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes], status: int, headers: Mapping[str, str]) -> None:
        super().__init__(_chain(first, rest), status, headers)
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._rest):
            await super().__call__(scope, receive, send)


async def _chain(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for piece in rest:
        yield piece


ROUTES = (
    Route("GET", f"{FILES}{{id}}/{{name}}", get_file, "attachments", errors=(404, 416), is_open=True, text="*/*"),
)
