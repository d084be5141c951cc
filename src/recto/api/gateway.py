"""Routes of the gateway (X3).

Requests of known users are sent with the server's key. Others use their own provider key if the settings allow it. A
user's credential is never sent to a provider.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import quote, unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recto.api.backend import backend_of, user_of
from recto.api.bodies import read_body
from recto.api.problems import requested_sdk, sdk_problem
from recto.api.route import Handler, Route
from recto.api.runs.admit import check_daily_tokens
from recto.api.runs.streams import OpenStreams, run_until_disconnect, write
from recto.conversation.json import dump
from recto.errors import ModelError, RectoError, WireError
from recto.models.choose import SDKS
from recto.models.upstream import Upstream, UpstreamRequest
from recto.models.wire_protocol import ProviderSdk
from recto.worker.gateway.relay import Gateway
from recto.worker.gateway.relayed_exchange import RelayedExchange

UNREACHABLE, TIMED_OUT = 502, 504
CONNECTION = "connection"
AUTHORIZATION, API_KEY = "authorization", "x-api-key"
# Headers that apply to one connection and are not forwarded.
HOP_BY_HOP = frozenset(
    {
        *(CONNECTION, "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "content-length", "upgrade", "http2-settings"),
    }
)
# Request headers that are not forwarded: also credentials, encodings and headers of proxies.
NOT_TO_PROVIDERS = HOP_BY_HOP | frozenset(
    {
        *("authorization", "x-api-key", "api-key", "cookie", "host", "expect", "accept-encoding", "content-encoding"),
        *("origin", "referer", "forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "fastly-client-ip"),
    }
)
PROXIES_AND_BROWSERS = ("x-forwarded-", "x-original-", "cf-", "sec-")
# Provider headers that are not relayed: they describe the provider's server, or would change how browsers treat ours.
NOT_TO_CALLERS = HOP_BY_HOP | {"date", "server", "set-cookie", "alt-svc", "strict-transport-security"}
FOR_BROWSERS = "access-control-"
MODELS = "/v1/models"
# A model name, such as `owner/model`. Other characters with a meaning in paths or queries are excluded.
MODEL = re.compile(r"[\w.:@+~-]+(/[\w.:@+~-]+)*", re.ASCII)
UNCOMPRESSED = {"accept-encoding": "identity"}
NO_SERVER_KEY = (
    "This server has no key for {provider}, so it cannot forward your request. Its operator can set {setting}, or "
    "RECTO_GATEWAY_KEYS=callers so that all callers send their own keys."
)
NO_ADDRESS = "This server cannot forward your request: the provider URL is invalid. See its log for the reason."
CALLERS_ONLY = (
    "This gateway forwards the keys of its callers, but your request has a credential of this server. Send a key of "
    "{provider}, or ask the operator to set RECTO_GATEWAY_KEYS=both."
)
SdkHandler: TypeAlias = Callable[[Request, ProviderSdk, Gateway], Awaitable[Response]]


class NoKeyToSend(RectoError):
    """No key is available to send with a request."""


class OpenCalls(OpenStreams):
    """Limits of concurrent requests through the gateway, in total and per user or key."""

    of_user = "You have {most} open requests through this gateway, which is the limit. Wait for one to end."
    of_server = "This gateway has {most} open requests, which is the limit. Try again in a moment."


def _with_sdk(handler: SdkHandler) -> Handler:
    """Wrap a handler with the detection of the SDK."""

    async def handle(request: Request) -> Response:
        sdk, gateway = requested_sdk(request.scope["path"], request.headers), backend_of(request).gateway
        if sdk is None or gateway is None:
            raise HTTPException(404)
        if sdk not in gateway.parts.upstreams:
            return sdk_problem(sdk, 404, "no_address", NO_ADDRESS)
        try:
            return await handler(request, sdk, gateway)
        except WireError as error:
            return sdk_problem(sdk, 400, "invalid_request", f"{error}. The request was not forwarded.")
        except NoKeyToSend as error:
            return sdk_problem(sdk, 403, "no_key", str(error))

    return handle


async def _relay(request: Request, sdk: ProviderSdk, gateway: Gateway) -> Response:
    """Relay a request with messages: repair, fold, store and send it."""
    owner, upstream = user_of(request).name, gateway.parts.upstreams[sdk]
    key = _key_for(request, upstream, gateway)
    with backend_of(request).calls.hold(owner) as stack:
        head = _upstream_request(request, sdk, key)
        body = await read_body(request, gateway.parts.settings.body_bytes, "The request")
        relayed_call = await gateway.accept(owner, upstream, body)
        upstream_request = replace(head, body=relayed_call.page.body)
        reader = upstream.reader(sdk.path.removeprefix(sdk.base), relayed_call.model, key)
        exchange = RelayedExchange(
            gateway, upstream, upstream_request, owner=owner, stored_request=relayed_call, reader=reader
        )
        return RelayedResponse(exchange, sdk, stack.pop_all())


async def _forward(request: Request, sdk: ProviderSdk, gateway: Gateway) -> Response:
    """Forward a request unchanged, and record only its tokens."""
    owner, upstream = user_of(request).name, gateway.parts.upstreams[sdk]
    key = _key_for(request, upstream, gateway)
    await check_daily_tokens(backend_of(request), owner)
    with backend_of(request).calls.hold(owner) as stack:
        head = _upstream_request(request, sdk, key)
        body = await read_body(request, gateway.parts.settings.body_bytes, "The request")
        reader = upstream.reader(_path(request).removeprefix(sdk.base), "", key)
        exchange = RelayedExchange(gateway, upstream, replace(head, body=body), owner=owner, reader=reader)
        return RelayedResponse(exchange, sdk, stack.pop_all())


def _key_for(request: Request, upstream: Upstream, gateway: Gateway) -> tuple[str, str] | None:
    """Return the caller's own key as sent; None for the server's key."""
    if user_of(request).is_caller:
        name = AUTHORIZATION if AUTHORIZATION in request.headers else API_KEY
        return name, request.headers[name]
    if gateway.parts.settings.keys == "callers":
        raise NoKeyToSend(CALLERS_ONLY.format(provider=upstream.provider))
    if upstream.needs_key and not upstream.has_key:
        raise NoKeyToSend(NO_SERVER_KEY.format(provider=upstream.provider, setting=upstream.key_setting))
    return None


def _upstream_request(request: Request, sdk: ProviderSdk, key: tuple[str, str] | None) -> UpstreamRequest:
    """Return the request to the provider, without its body. A query with the user's credential raises WireError."""
    header = request.headers.get(AUTHORIZATION) or request.headers[API_KEY]
    credential = None if key else header.split()[-1]
    query = request.scope["query_string"].decode("latin-1")
    if credential and credential in unquote(query):
        raise WireError(where="query", problem="contains your credential, which must not reach the provider. Remove it")
    return UpstreamRequest(
        method=request.method,
        path=_path(request).removeprefix(sdk.base) + (f"?{query}" if query else ""),
        headers={**headers_for_provider(request.headers.items(), credential), **UNCOMPRESSED},
        key=key,
    )


def _path(request: Request) -> str:
    """Build the provider path from the route and the encoded model name. Raises WireError for an invalid name."""
    name: str | None = request.path_params.get("name")
    if name is None:
        return str(request.scope["path"])
    if not MODEL.fullmatch(name) or not {".", ".."}.isdisjoint(name.split("/")):
        raise WireError(where="path", problem="the part after /v1/models/ is not a model name")
    return f"{MODELS}/{quote(name, safe=':@+~')}"


class RelayedResponse(Response):
    """A response that sends a request to the provider and relays the result. `stack` is closed at the end."""

    def __init__(self, exchange: RelayedExchange, sdk: ProviderSdk, stack: ExitStack) -> None:
        # Skips Response.__init__: status and headers are unknown until the provider responds.
        self.status_code, self.body, self.background, self.raw_headers = 200, b"", None, []
        self._exchange = exchange
        self._sdk: ProviderSdk = sdk
        self._stack = stack
        self._problem: ModelError | None = None
        self._is_sent = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Relay the request. A client that disconnects also cancels the request to the provider.

        The last chunk is sent after the exchange is stored and released, so that the client may send its next request
        at once.
        """
        try:
            with self._stack:
                # Record the exchange as abandoned if an exception ends it early.
                is_left = True
                try:
                    is_left = not await run_until_disconnect(receive, self._relay(scope, receive, send))
                except ModelError as error:
                    is_left, self._problem = False, error
                    raise
                finally:
                    await self._exchange.finish(is_left=is_left, problem=self._problem)
        finally:
            if self._is_sent:
                await write(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _relay(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = self._exchange
        try:
            await exchange.open()
        except ModelError as error:
            self._problem = error
            status = TIMED_OUT if isinstance(error.__cause__, TimeoutError) else UNREACHABLE
            await sdk_problem(self._sdk, status, "upstream_failed", str(error))(scope, receive, send)
            return
        headers = headers_for_caller(exchange.headers)
        await write(send, {"type": "http.response.start", "status": exchange.status, "headers": headers})

        def last_event(error: ModelError) -> bytes:
            return self._sdk.fault_event % dump(self._sdk.error(UNREACHABLE, "upstream_cut_off", str(error)))

        async with aclosing(exchange.pieces(last_event)) as pieces:
            async for piece in pieces:
                await write(send, {"type": "http.response.body", "body": piece, "more_body": True})
        self._is_sent = True


def headers_for_provider(headers: Sequence[tuple[str, str]], credential: str | None) -> dict[str, str]:
    """Return the headers to forward, without those that contain this server's credential."""
    fields = {name.lower(): value for name, value in headers}
    excluded = NOT_TO_PROVIDERS | _connection_headers(
        ",".join([value for name, value in headers if name.lower() == CONNECTION])
    )
    return {
        name: value
        for name, value in fields.items()
        if not (name in excluded or name.startswith(PROXIES_AND_BROWSERS) or (credential and credential in value))
    }


def headers_for_caller(headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Return the response headers to send back."""
    excluded = NOT_TO_CALLERS | _connection_headers(headers.get(CONNECTION.encode(), b"").decode("latin-1"))
    rows = [(name.decode("latin-1"), name, value) for name, value in headers.items()]
    return [(name, value) for text, name, value in rows if text not in excluded and not text.startswith(FOR_BROWSERS)]


def _connection_headers(connection: str) -> frozenset[str]:
    """Return the headers that the Connection header names."""
    return frozenset(name.strip().lower() for name in connection.split(","))


# The API description omits these routes, because the providers document them.
ROUTES = (
    *[Route("POST", sdk.path, _with_sdk(_relay)) for sdk in SDKS],
    *[Route("POST", path, _with_sdk(_forward)) for sdk in SDKS for path in sdk.also],
    Route("GET", MODELS, _with_sdk(_forward)),
    Route("GET", f"{MODELS}/{{name}}", _with_sdk(_forward)),
)
