"""CopilotKit's single endpoint: an envelope names the route to call.

Clients use it if configured to, or if they cannot reach `info`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal
from urllib.parse import quote, unquote

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope
from typing_extensions import TypedDict

from recto.api.backend import backend_of
from recto.api.bodies import read_body
from recto.api.copilotkit.info import BASE, DEFAULT
from recto.api.route import THREAD, Route
from recto.conversation.json import Json, Object, dump, load_object

# Headers of the envelope's body, which do not apply to the nested one.
OF_SENT_BODY = (b"content-length", b"content-encoding", b"transfer-encoding")
RESOURCES = "/threads"
# Size of an envelope without its nested body.
ENVELOPE_BYTES = 4_096


class EnvelopeBody(BaseModel):
    """The name of a route, its path parameters and its body."""

    method: Literal["info", "agent/run", "agent/connect", "agent/suggest", "agent/stop", "resource/request"]
    params: dict[str, str] | None = None
    body: dict[str, object] | None = None


class EnvelopeAnswer(TypedDict):
    """The response of the named route."""


@dataclass(frozen=True, kw_only=True)
class Meant:
    """The request in an envelope. `target` is the path and query after the base path."""

    method: str
    target: str
    body: bytes = b""


async def ask_copilotkit(request: Request) -> Response:
    """Call one of CopilotKit's routes by an envelope."""
    most = backend_of(request).bodies.agui_bytes + ENVELOPE_BYTES
    meant = read_envelope(await read_body(request, most, "Request body"))
    scope = _scope_of(request.scope, meant)
    return await request.app.ask(Request(scope, _given(meant.body, request.receive)))


def read_envelope(body: bytes) -> Meant:
    """Parse an envelope. Raises HTTPException for an invalid one."""
    envelope = load_object(body)
    if envelope is None:
        raise _wrong("The body must be a JSON object with `method`.")
    name, params, inner = envelope.get("method"), envelope.get("params"), envelope.get("body")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise _wrong(f"`method` must be one of: {', '.join(KINDS)}.")
    return kind(params if isinstance(params, dict) else {}, inner)


def _info(_params: Object, _body: Json) -> Meant:
    return Meant(method="GET", target="/info")


def _of_agent(action: str) -> Callable[[Object, Json], Meant]:
    def meant(params: Object, body: Json) -> Meant:
        if body is None:
            raise _wrong("`body` is missing; it is a RunAgentInput.")
        return Meant(method="POST", target=f"/agent/{_part(params, 'agentId')}/{action}", body=dump(body))

    return meant


def _stop(params: Object, body: Json) -> Meant:
    target = f"/agent/{_part(params, 'agentId')}/stop/{_part(params, 'threadId')}"
    return Meant(method="POST", target=target, body=b"" if body is None else dump(body))


def _resource(params: Object, body: Json) -> Meant:
    path, method = _text(params, "path"), _text(params, "httpMethod").upper()
    if path.partition("?")[0] != RESOURCES and not path.startswith(f"{RESOURCES}/"):
        raise _wrong(f"`params.path` must begin with {RESOURCES}.")
    if not (method.isascii() and path.isascii() and path.isprintable()):
        raise _wrong("`params.path` and `params.httpMethod` must be written as in a request.")
    return Meant(method=method, target=path, body=b"" if body is None or method == "GET" else dump(body))


KINDS: Mapping[str, Callable[[Object, Json], Meant]] = {
    "info": _info,
    "agent/run": _of_agent("run"),
    "agent/connect": _of_agent("connect"),
    "agent/suggest": _of_agent("suggest"),
    "agent/stop": _stop,
    "resource/request": _resource,
}


def _part(params: Object, name: str) -> str:
    return quote(_text(params, name), safe="")


def _text(params: Object, name: str) -> str:
    found = params.get(name)
    if isinstance(found, str) and found.strip():
        return found
    raise _wrong(f"`params.{name}` is missing; it is a text.")


def _wrong(detail: str) -> HTTPException:
    return HTTPException(HTTPStatus.BAD_REQUEST, detail)


def _scope_of(scope: Scope, meant: Meant) -> Scope:
    path, _, query = f"{BASE}{meant.target}".partition("?")
    return {
        **scope,
        "method": meant.method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [field for field in scope["headers"] if field[0] not in OF_SENT_BODY],
    }


def _given(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields the body, then the messages of the connection."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


ROUTES = (
    Route(
        method="POST",
        path=BASE,
        handler=ask_copilotkit,
        tag="copilotkit",
        body=EnvelopeBody,
        answer=EnvelopeAnswer,
        streams=True,
        refusals=(404, 409, 413, 422),
        examples={
            "body": {"method": "agent/stop", "params": {"agentId": DEFAULT, "threadId": THREAD}},
            "answer": {"stopped": False, "message": f"No active run for thread '{THREAD}'."},
        },
    ),
)
