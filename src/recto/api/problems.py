"""Error responses as `application/problem+json`, and the mapping of errors to statuses."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from recto.api.access.audit import audit
from recto.api.route import JSON_MEDIA, PROBLEM_MEDIA, Problem
from recto.conversation.json import dump
from recto.errors import (
    Conflict,
    FileRefused,
    LimitReached,
    NotFound,
    RectoError,
    Refused,
    ServerFull,
    SettingsError,
    StorageDown,
    StoreBusy,
    StoreDown,
    TooLarge,
    WireError,
    WrongParameters,
)

STATUS: Mapping[type[RectoError], tuple[int, str]] = {
    SettingsError: (422, "invalid_setting"),
    TooLarge: (413, "too_large"),
    Conflict: (409, "conflict"),
    ServerFull: (503, "busy"),
    StoreBusy: (503, "busy"),
    StoreDown: (503, "store_down"),
    StorageDown: (503, "storage_down"),
}
# Details of a failing database or storage name hosts and folders; they are logged only.
DOWN: Mapping[type[RectoError], str] = {
    StoreDown: "The server cannot use its database at present. Nothing stored is lost; try again in a moment.",
    StorageDown: "The server cannot use its storage at present. Nothing stored is lost; try again in a moment.",
}
LOGGER = logging.getLogger("recto.api")
RETRY_SECONDS = 1
NO_ADDRESS = "There is nothing at this address. All that there are stand in /docs."
CODES = {404: "not_found", 400: "bad_request", 408: "too_slow", 431: "too_large", 503: "stopping"}


def problem(
    status: int, code: str, detail: str, *, errors: Sequence[Mapping[str, str]] = (), retry: float | None = None
) -> Response:
    """Return a problem. `errors` lists invalid fields; `retry` is the time to wait in seconds."""
    body: Problem = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "message": detail,
        "code": code,
        "errors": list(errors),
    }
    if retry is None and status == HTTPStatus.SERVICE_UNAVAILABLE:
        retry = RETRY_SECONDS
    headers = {"retry-after": str(max(1, round(retry)))} if retry is not None else None
    return Response(dump(body), status, headers, media_type=PROBLEM_MEDIA)


def problem_media(accept: str) -> str:
    """Return the media type of a problem for a client with this Accept header. The body is JSON in any case.

    AG-UI clients accept only event streams, and read a problem only as plain JSON.
    """
    kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")} - {""}
    if PROBLEM_MEDIA in kinds or not kinds:
        return PROBLEM_MEDIA
    takes_any = "*/*" in kinds or "application/*" in kinds
    return PROBLEM_MEDIA if takes_any and JSON_MEDIA not in kinds else JSON_MEDIA


def refuse_user(request: Request, what: str) -> Response:
    """Reject a user who is not an operator."""
    audit(request, "not_an_operator", status=403)
    detail = f"Only an operator of this server may {what}. Operators are named in RECTO_OPERATORS."
    return problem(403, "not_an_operator", detail)


def refuse(request: Request, error: Exception) -> Response:
    """Return the problem of an error."""
    match error:
        case NotFound():
            # The resource may belong to another user: the audit log records the attempt.
            audit(request, f"no_{error.what.replace(' ', '_')}", status=404)
            return problem(404, "not_found", str(error))
        case Refused():
            return problem(422, "invalid_input", str(error), errors=[{"field": error.where, "problem": str(error)}])
        case FileRefused():
            return problem(422, error.code, str(error))
        case LimitReached():
            return problem(429, "limit_reached", str(error), retry=error.retry)
        case WireError():
            return problem(422, "invalid_input", str(error), errors=[{"field": error.where, "problem": error.problem}])
        case WrongParameters():
            errors = [{"field": name, "problem": problem} for name, problem in error.wrong]
            return problem(422, "invalid_input", str(error), errors=errors)
        case StoreDown() | StorageDown():
            # The engine logs database failures itself.
            level = logging.INFO if isinstance(error, StoreDown) else logging.WARNING
            LOGGER.log(level, "refused %s: %s", request.method, error)
            return problem(*STATUS[type(error)], DOWN[type(error)])
        case _:
            known = next((known for kind, known in STATUS.items() if isinstance(error, kind)), None)
            if known is None:
                # Nothing that clients should read: answered and logged as what nobody foresaw.
                raise error
            return problem(*known, str(error))


def refuse_http(error: HTTPException) -> Response:
    """Return the problem of an unknown path, or of the status a route raised."""
    status = error.status_code
    detail = NO_ADDRESS if status == HTTPStatus.NOT_FOUND else error.detail
    answer = problem(status, CODES.get(status, "http"), detail)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        # The rest of the body stays unread.
        answer.headers["connection"] = "close"
    return answer


def tell_methods(method: str, methods: Iterable[str]) -> Response:
    """Return the allowed methods, for OPTIONS and for a wrong method."""
    allowed = ", ".join(sorted({"OPTIONS", *methods}))
    if method == "OPTIONS":
        return Response(status_code=204, headers={"allow": allowed})
    answer = problem(405, "wrong_method", f"This address has no such method. It has: {allowed}.")
    answer.headers["allow"] = allowed
    return answer
