"""CopilotKit's single endpoint: an envelope names the route to call.

Clients use it if configured to, or if they cannot reach `info`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive
from typing_extensions import TypedDict

from recto.api.backend import backend_of
from recto.api.bodies import read_body
from recto.api.copilotkit.info import BASE, DEFAULT
from recto.api.route import THREAD, Route
from recto.conversation.json import Json, Object, dump, load_object

# Headers of the envelope's body, which do not apply to the nested one.
BODY_HEADERS = (b"content-length", b"content-encoding", b"transfer-encoding")
RESOURCES = "/threads"
# Size of an envelope without its nested body.
ENVELOPE_BYTES = 4_096


class EnvelopeBody(BaseModel):
    """The name of a route, its path parameters and its body."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"method": "agent/stop", "params": {"agentId": DEFAULT, "threadId": THREAD}},
        }
    )

    method: Literal["info", "agent/run", "agent/connect", "agent/suggest", "agent/stop", "resource/request"]
    params: dict[str, str] | None = None
    body: dict[str, object] | None = None


class EnvelopeAnswer(TypedDict):
    """The response of the named route."""


@dataclass(frozen=True, kw_only=True)
class NestedRequest:
    """The request in an envelope. `target` is the path and query after the base path."""

    method: str
    target: str
    body: bytes = b""


async def ask_copilotkit(request: Request) -> Response:
    """Call one of CopilotKit's routes by an envelope."""
    limit = backend_of(request).bodies.agui_bytes + ENVELOPE_BYTES
    nested = read_envelope(await read_body(request, limit, "Request body"))
    path, _, query = f"{BASE}{nested.target}".partition("?")
    scope = {
        **request.scope,
        "method": nested.method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [field for field in request.scope["headers"] if field[0] not in BODY_HEADERS],
    }
    return await request.app.ask(Request(scope, _receive_body(nested.body, request.receive)))


def read_envelope(body: bytes) -> NestedRequest:
    """Parse an envelope. Raises HTTPException for an invalid one."""
    envelope = load_object(body)
    if envelope is None:
        raise _bad_request("The body must be a JSON object with `method`.")
    name, params, inner = envelope.get("method"), envelope.get("params"), envelope.get("body")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise _bad_request(f"`method` must be one of: {', '.join(KINDS)}.")
    return kind(params if isinstance(params, dict) else {}, inner)


def _agent_action(action: str) -> Callable[[Object, Json], NestedRequest]:
    def make(params: Object, body: Json) -> NestedRequest:
        if body is None:
            raise _bad_request("`body` is missing. Send a RunAgentInput.")
        return NestedRequest(method="POST", target=f"/agent/{_part(params, 'agentId')}/{action}", body=dump(body))

    return make


def _stop(params: Object, body: Json) -> NestedRequest:
    target = f"/agent/{_part(params, 'agentId')}/stop/{_part(params, 'threadId')}"
    return NestedRequest(method="POST", target=target, body=b"" if body is None else dump(body))


def _resource(params: Object, body: Json) -> NestedRequest:
    path, method = _text(params, "path"), _text(params, "httpMethod").upper()
    if path.partition("?")[0] != RESOURCES and not path.startswith(f"{RESOURCES}/"):
        raise _bad_request(f"`params.path` must begin with {RESOURCES}.")
    if not (method.isascii() and path.isascii() and path.isprintable()):
        raise _bad_request("`params.path` and `params.httpMethod` must be valid in an HTTP request.")
    return NestedRequest(method=method, target=path, body=b"" if body is None or method == "GET" else dump(body))


KINDS: Mapping[str, Callable[[Object, Json], NestedRequest]] = {
    "info": lambda _params, _body: NestedRequest(method="GET", target="/info"),
    "agent/run": _agent_action("run"),
    "agent/connect": _agent_action("connect"),
    "agent/suggest": _agent_action("suggest"),
    "agent/stop": _stop,
    "resource/request": _resource,
}


def _part(params: Object, name: str) -> str:
    return quote(_text(params, name), safe="")


def _text(params: Object, name: str) -> str:
    text = params.get(name)
    if isinstance(text, str) and text.strip():
        return text
    raise _bad_request(f"`params.{name}` is missing. Send a text.")


def _bad_request(detail: str) -> HTTPException:
    return HTTPException(HTTPStatus.BAD_REQUEST, detail)


def _receive_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields the body, then the messages of the connection."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message


ROUTES = (
    Route(
        "POST",
        BASE,
        ask_copilotkit,
        "copilotkit",
        body=EnvelopeBody,
        streams=True,
        errors=(404, 409, 413, 422),
        json=EnvelopeAnswer,
    ),
)
