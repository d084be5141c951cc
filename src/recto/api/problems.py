"""Refusals as `application/problem+json`: one form for all of them. What was wrong, and what to do about it."""

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
# What is wrong with a database or a storage names hosts and folders: that is for the log.
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
    """A refusal. `errors` names the fields that are wrong; `retry` the seconds after which to try again."""
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
    """What a refusal is called for a client that accepts this: it is JSON in any case.

    Clients of AG-UI accept event streams alone, and read a refusal only where it is called JSON.
    """
    kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")} - {""}
    if PROBLEM_MEDIA in kinds or not kinds:
        return PROBLEM_MEDIA
    takes_any = "*/*" in kinds or "application/*" in kinds
    return PROBLEM_MEDIA if takes_any and JSON_MEDIA not in kinds else JSON_MEDIA


def refuse_user(request: Request, what: str) -> Response:
    """What users who are no operators get where only operators may do something."""
    audit(request, "not_an_operator", status=403)
    detail = f"Only an operator of this server may {what}. Operators are named in RECTO_OPERATORS."
    return problem(403, "not_an_operator", detail)


def refuse(request: Request, error: Exception) -> Response:
    """What an error of ours looks like to a client."""
    match error:
        case NotFound():
            # It may be somebody else's: who looks for what is not theirs is written down, and told nothing.
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
            # Of a database the engine tells, whoever asks for what.
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
    """What an address nobody answers looks like; or what a route says of the connection itself."""
    status = error.status_code
    detail = NO_ADDRESS if status == HTTPStatus.NOT_FOUND else error.detail
    answer = problem(status, CODES.get(status, "http"), detail)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        # What is left of the body is not read.
        answer.headers["connection"] = "close"
    return answer


def tell_methods(method: str, methods: Iterable[str]) -> Response:
    """The methods an address has: told to who asks for them, and to who used another."""
    allowed = ", ".join(sorted({"OPTIONS", *methods}))
    if method == "OPTIONS":
        return Response(status_code=204, headers={"allow": allowed})
    answer = problem(405, "wrong_method", f"This address has no such method. It has: {allowed}.")
    answer.headers["allow"] = allowed
    return answer
