"""Routes of the gateway (X3).

Requests of known users are sent with the server's key. Others use their own provider key if the settings allow it. A
user's credential is never sent to a provider.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import quote, unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from recto.api.access.sdk_refusals import sdk_at, sdk_refusal
from recto.api.backend import backend_of, user_of
from recto.api.bodies import read_body
from recto.api.gateway.passed_headers import headers_for_provider
from recto.api.gateway.relayed_answer import RelayedAnswer
from recto.api.parameters import Handler
from recto.api.route import Route
from recto.errors import RectoError, WireError
from recto.models.choose import SDKS
from recto.models.upstream import Upstream, UpstreamRequest
from recto.models.wire_protocol import ProviderSdk
from recto.store.runs.admission import day_is_spent
from recto.worker.gateway.relay import Gateway
from recto.worker.gateway.relayed_exchange import RelayedExchange

MODELS = "/v1/models"
AUTHORIZATION, API_KEY = "authorization", "x-api-key"
# Model names may have an owner before a slash. Nothing else that a server could read as a path or a query.
MODEL = re.compile(r"[\w.:@+~-]+(/[\w.:@+~-]+)*", re.ASCII)
UNCOMPRESSED = {"accept-encoding": "identity"}
NO_SERVER_KEY = (
    "This server has no key of its own for {provider}, so it cannot send your request on. Whoever runs it can set "
    "{setting}, or RECTO_GATEWAY_KEYS=callers to have everybody send their own."
)
NO_ADDRESS = "This server cannot send your request on: the address of the provider is wrong. Its log says why."
CALLERS_ONLY = (
    "This gateway passes on the keys of its callers, and you came with a credential of this server. Send a key of "
    "{provider}, or have whoever runs it set RECTO_GATEWAY_KEYS=both."
)
SdkHandler: TypeAlias = Callable[[Request, ProviderSdk, Gateway], Awaitable[Response]]


class NoKeyToSend(RectoError):
    """No key is available to send with a request."""


def _answering_sdks(handler: SdkHandler) -> Handler:
    """Wrap a handler with the detection of the SDK."""

    async def handle(request: Request) -> Response:
        sdk, gateway = sdk_at(request.scope["path"], request.headers), backend_of(request).gateway
        if sdk is None or gateway is None:
            raise HTTPException(404)
        if sdk not in gateway.parts.upstreams:
            return sdk_refusal(sdk, 404, "no_address", NO_ADDRESS)
        try:
            return await handler(request, sdk, gateway)
        except WireError as error:
            return sdk_refusal(sdk, 400, "invalid_request", f"{error}. Nothing was sent on.")
        except NoKeyToSend as error:
            return sdk_refusal(sdk, 403, "no_key", str(error))

    return handle


async def _relay(request: Request, sdk: ProviderSdk, gateway: Gateway) -> Response:
    """Relay a request with messages: repair, fold, store and send it."""
    owner, upstream = user_of(request).name, gateway.parts.upstreams[sdk]
    key = _key_for(request, upstream, gateway)
    with backend_of(request).calls.hold(owner) as held:
        sent = _sent_on(request, sdk, key)
        body = await read_body(request, gateway.parts.settings.body_bytes, "The request")
        relayed = await gateway.take(owner, upstream, body)
        sent = replace(sent, body=relayed.page.body)
        reader = upstream.reader(sdk.path.removeprefix(sdk.base), relayed.model, key)
        exchange = RelayedExchange(gateway, upstream, sent, owner=owner, relayed=relayed, reader=reader)
        return RelayedAnswer(exchange, sdk, held.pop_all())


async def _pass_on(request: Request, sdk: ProviderSdk, gateway: Gateway) -> Response:
    """Forward a request unchanged, and record only its tokens."""
    owner, upstream = user_of(request).name, gateway.parts.upstreams[sdk]
    key = _key_for(request, upstream, gateway)
    await _check_tokens(request, owner)
    with backend_of(request).calls.hold(owner) as held:
        sent = _sent_on(request, sdk, key)
        body = await read_body(request, gateway.parts.settings.body_bytes, "The request")
        sent = replace(sent, body=body)
        reader = upstream.reader(_path(request).removeprefix(sdk.base), "", key)
        exchange = RelayedExchange(gateway, upstream, sent, owner=owner, reader=reader)
        return RelayedAnswer(exchange, sdk, held.pop_all())


async def _check_tokens(request: Request, owner: str) -> None:
    backend = backend_of(request)
    most, now = backend.bounds.user_tokens, backend.clock()
    spent = await backend.store.spent(owner, now.date()) if most else None
    if spent and spent.input + spent.output >= most:
        raise day_is_spent(spent.input + spent.output, most, now)


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


def _sent_on(request: Request, sdk: ProviderSdk, key: tuple[str, str] | None) -> UpstreamRequest:
    """Return the request to the provider without its body. Raises WireError if the query contains the user's
    credential.
    """
    credential = None if key else _shown(request)
    query = request.scope["query_string"].decode("latin-1")
    if credential and credential in unquote(query):
        raise WireError(
            where="query", problem="it has the credential in it that you came with, which no provider may know"
        )
    return UpstreamRequest(
        method=request.method,
        path=_path(request).removeprefix(sdk.base) + (f"?{query}" if query else ""),
        headers={**headers_for_provider(request.headers.items(), credential), **UNCOMPRESSED},
        key=key,
    )


def _shown(request: Request) -> str:
    return (request.headers.get(AUTHORIZATION) or request.headers[API_KEY]).split()[-1]


def _path(request: Request) -> str:
    """Return the provider path of the route, never the path as written. Raises WireError for an invalid model name."""
    name: str | None = request.path_params.get("name")
    if name is None:
        return str(request.scope["path"])
    if not MODEL.fullmatch(name) or not {".", ".."}.isdisjoint(name.split("/")):
        raise WireError(where="path", problem="what follows /v1/models/ is no name of a model")
    return f"{MODELS}/{quote(name, safe=':@+~')}"


# Described by their providers, not by us.
ROUTES = (
    *[Route(method="POST", path=sdk.path, handler=_answering_sdks(_relay), tag="") for sdk in SDKS],
    *[Route(method="POST", path=path, handler=_answering_sdks(_pass_on), tag="") for sdk in SDKS for path in sdk.also],
    Route(method="GET", path=MODELS, handler=_answering_sdks(_pass_on), tag=""),
    Route(method="GET", path=f"{MODELS}/{{name}}", handler=_answering_sdks(_pass_on), tag=""),
)
