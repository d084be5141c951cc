"""Refusals as `application/problem+json`: one form for all of them. What was wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from recto.errors import Conflict, NotFound, RectoError, SettingsError, StoreBusy, StoreDown, WireError
from recto.page.canonical import dump

MEDIA = "application/problem+json"
STATUS: Mapping[type[RectoError], tuple[int, str]] = {
    WireError: (422, "invalid_input"),
    SettingsError: (422, "invalid_setting"),
    NotFound: (404, "not_found"),
    Conflict: (409, "conflict"),
    StoreBusy: (503, "busy"),
    StoreDown: (503, "store_down"),
}
RETRY_SECONDS = "1"
TOO_LARGE = 413


def problem(status: int, code: str, detail: str) -> Response:
    """A refusal."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail, "code": code}
    headers = {"retry-after": RETRY_SECONDS} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return Response(dump(body), status, headers, media_type=MEDIA)


async def refuse(_request: Request, error: Exception) -> Response:
    """What an error of ours looks like to a client."""
    status, code = next((told for kind, told in STATUS.items() if isinstance(error, kind)), (500, "internal"))
    return problem(status, code, str(error))
