"""Error responses: `application/problem+json`, or on the gateway's paths (X3) the form of the caller's SDK.

SDKs decide by the status whether to retry, and by `Retry-After` when.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from recto.api.access.audit import audit
from recto.api.route import JSON_MEDIA, PROBLEM_MEDIA, Problem
from recto.conversation.json import dump, load_object
from recto.errors import (
    Conflict,
    FileRefused,
    InvalidRequest,
    LimitReached,
    NotFound,
    RectoError,
    ServerFull,
    SettingsError,
    StorageDown,
    StoreBusy,
    StoreDown,
    TooLarge,
    WireError,
    WrongParameters,
)
from recto.models.choose import SDKS
from recto.models.wire_protocol import ProviderSdk

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
NO_ADDRESS = "Not found. See /docs for the available routes."
# The prefix of all gateway paths, and the headers that an SDK's error response keeps.
GATEWAY = "/v1/"
SDK_HEADERS = ("retry-after", "allow", "connection")
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


def operator_problem(request: Request, action: str) -> Response:
    """Reject a user who is not an operator."""
    audit(request, "not_an_operator", status=403)
    detail = f"Only an operator of this server may {action}. RECTO_OPERATORS names the operators."
    return problem(403, "not_an_operator", detail)


def error_problem(request: Request, error: Exception) -> Response:
    """Return the problem of an error."""
    match error:
        case NotFound():
            # Record the attempt in the audit log, because the resource may belong to another user.
            audit(request, f"no_{error.what.replace(' ', '_')}", status=404)
            return problem(404, "not_found", str(error))
        case InvalidRequest():
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
            # The engine logs database failures too, so INFO is enough here.
            level = logging.INFO if isinstance(error, StoreDown) else logging.WARNING
            LOGGER.log(level, "refused %s: %s", request.method, error)
            return problem(*STATUS[type(error)], DOWN[type(error)])
        case _:
            status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), None)
            if status is None:
                # Raise an unexpected error again: the server logs it, and the client receives a 500 without details.
                raise error
            return problem(*status, str(error))


def http_problem(error: HTTPException) -> Response:
    """Return the problem of an unknown path, or of the status a route raised."""
    status = error.status_code
    detail = NO_ADDRESS if status == HTTPStatus.NOT_FOUND else error.detail
    answer = problem(status, CODES.get(status, "http"), detail)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        # Close the connection, because the rest of the body stays unread.
        answer.headers["connection"] = "close"
    return answer


def methods_response(method: str, methods: Iterable[str]) -> Response:
    """Return a response that lists the allowed methods: 204 for OPTIONS, otherwise 405."""
    allowed = ", ".join(sorted({"OPTIONS", *methods}))
    if method == "OPTIONS":
        return Response(status_code=204, headers={"allow": allowed})
    answer = problem(405, "wrong_method", f"Method not allowed here. Allowed: {allowed}.")
    answer.headers["allow"] = allowed
    return answer


def requested_sdk(path: str, headers: Headers) -> ProviderSdk | None:
    """Return the SDK that sent a request, by path or else by header. None outside of the gateway's paths."""
    if not path.startswith(GATEWAY):
        return None
    if exact := next((sdk for sdk in SDKS if path in (sdk.path, *sdk.also)), None):
        return exact
    first, *others = SDKS
    return next((sdk for sdk in others if path.startswith(sdk.path) or sdk.own_header in headers), first)


def adapt_to_sdk(answer: Response, path: str, headers: Headers) -> Response:
    """Return the response, with a problem on a gateway path converted to the SDK's form."""
    sdk = requested_sdk(path, headers) if answer.media_type == PROBLEM_MEDIA else None
    if sdk is None:
        return answer
    body = load_object(bytes(answer.body)) or {}
    error = sdk_problem(sdk, answer.status_code, str(body.get("code")), str(body.get("detail")))
    error.headers.update({name: answer.headers[name] for name in SDK_HEADERS if name in answer.headers})
    return error


def sdk_problem(sdk: ProviderSdk, status: int, code: str, detail: str, *, retry: float | None = None) -> Response:
    """Return an error response in the SDK's form. `retry` is the time to wait in seconds."""
    headers = {"retry-after": str(max(1, round(retry)))} if retry is not None else None
    return Response(dump(sdk.error(status, code, detail)), status, headers, media_type=JSON_MEDIA)
