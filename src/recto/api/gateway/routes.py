"""Routes of the gateway (X3): the paths that SDKs of providers know, for agents that are pointed here.

A known user goes on with the server's key, anybody else with the key they brought, where the settings allow it; no
credential of this server ever goes to a provider.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from recto.api.access.sdk_refusals import sdk_at, sdk_refusal
from recto.api.backend import backend_of, user_of
from recto.api.bodies import read_body
from recto.api.gateway.relayed_answer import RelayedAnswer
from recto.api.parameters import Handler
from recto.api.problems import refuse
from recto.api.route import Route
from recto.conversation.json import load_object
from recto.errors import LimitReached, RectoError, WireError
from recto.models.choose import SDKS
from recto.models.upstream import Upstream, UpstreamRequest
from recto.models.wire_protocol import ProviderSdk
from recto.store.runs.admission import day_is_spent
from recto.worker.gateway.relay import Gateway
from recto.worker.gateway.relayed_exchange import RelayedExchange

MODELS = "/v1/models"
AUTHORIZATION, API_KEY = "authorization", "x-api-key"
# Credentials, what is of one connection, and who is behind a proxy: none of it is for the provider.
KEPT_BACK = frozenset(
    {
        *(AUTHORIZATION, API_KEY, "api-key", "cookie", "proxy-authorization"),
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("expect", "accept-encoding", "content-encoding", "origin", "referer", "forwarded", "via", "x-real-ip"),
    }
)
FORWARDED, BROWSERS = "x-forwarded-", "sec-"
UNCOMPRESSED = {"accept-encoding": "identity"}
NO_SERVER_KEY = (
    "This server has no key of its own for {provider}, so it cannot send your request on. Whoever runs it can set "
    "{setting}, or RECTO_GATEWAY_KEYS=callers to have everybody send their own."
)
CALLERS_ONLY = (
    "This gateway passes on the keys of its callers, and you came with a credential of this server. Send a key of "
    "{provider}, or have whoever runs it set RECTO_GATEWAY_KEYS=both."
)
SdkHandler: TypeAlias = Callable[[Request, ProviderSdk, Gateway], Awaitable[Response]]


class NoKeyToSend(RectoError):
    """There is no key that a request could go on with."""


def _answering_sdks(handler: SdkHandler) -> Handler:
    """A handler whose refusals are in the form that the SDK which asks expects."""

    async def handle(request: Request) -> Response:
        sdk, gateway = sdk_at(request.url.path, request.headers), backend_of(request).gateway
        if sdk is None or gateway is None:
            raise HTTPException(404)
        try:
            return await handler(request, sdk, gateway)
        except WireError as error:
            return sdk_refusal(sdk, 400, "invalid_request", f"{error}. Nothing was sent on.")
        except NoKeyToSend as error:
            return sdk_refusal(sdk, 403, "no_key", str(error))
        except LimitReached as error:
            return sdk_refusal(sdk, 429, "limit_reached", str(error), retry=error.retry)
        except HTTPException as error:
            return sdk_refusal(sdk, error.status_code, "http", error.detail)
        except RectoError as error:
            said = refuse(request, error)
            found, retry = load_object(bytes(said.body)) or {}, said.headers.get("retry-after")
            detail, code = str(found.get("detail")), str(found.get("code"))
            return sdk_refusal(sdk, said.status_code, code, detail, retry=float(retry) if retry else None)

    return handle


async def _relay(request: Request, sdk: ProviderSdk, gateway: Gateway) -> Response:
    """A request with messages: repaired, folded, stored, sent on."""
    owner, upstream = user_of(request).name, gateway.parts.upstreams[sdk]
    key = _key_for(request, upstream, gateway)
    body = await read_body(request, gateway.parts.settings.body_bytes, "The request")
    with backend_of(request).calls.hold(owner) as held:
        relayed = await gateway.take(owner, upstream, body)
        sent = _sent_on(request, sdk, relayed.page.body, key)
        reader = upstream.reader(sdk.path.removeprefix(sdk.base), relayed.model)
        exchange = RelayedExchange(gateway, upstream, sent, owner=owner, relayed=relayed, reader=reader)
        return RelayedAnswer(exchange, sdk, held.pop_all())


async def _pass_on(request: Request, sdk: ProviderSdk, gateway: Gateway) -> Response:
    """A request that is not looked into: it goes to the provider as it is, and only the tokens it took are kept."""
    owner, upstream = user_of(request).name, gateway.parts.upstreams[sdk]
    key = _key_for(request, upstream, gateway)
    await _check_tokens(request, owner)
    body = await read_body(request, gateway.parts.settings.body_bytes, "The request")
    with backend_of(request).calls.hold(owner) as held:
        sent = _sent_on(request, sdk, body, key)
        reader = upstream.reader(request.url.path.removeprefix(sdk.base), "")
        exchange = RelayedExchange(gateway, upstream, sent, owner=owner, reader=reader)
        return RelayedAnswer(exchange, sdk, held.pop_all())


async def _check_tokens(request: Request, owner: str) -> None:
    backend = backend_of(request)
    most, now = backend.bounds.user_tokens, backend.clock()
    spent = await backend.store.spent(owner, now.date()) if most else None
    if spent and spent.input + spent.output >= most:
        raise day_is_spent(spent.input + spent.output, most, now)


def _key_for(request: Request, upstream: Upstream, gateway: Gateway) -> tuple[str, str] | None:
    """The key that goes along, as the caller sent it; None: the server's own, if it has one."""
    if user_of(request).is_caller:
        name = AUTHORIZATION if AUTHORIZATION in request.headers else API_KEY
        return name, request.headers[name]
    if gateway.parts.settings.keys == "callers":
        raise NoKeyToSend(CALLERS_ONLY.format(provider=upstream.provider))
    if upstream.needs_key and not upstream.has_key:
        raise NoKeyToSend(NO_SERVER_KEY.format(provider=upstream.provider, setting=upstream.key_setting))
    return None


def _sent_on(request: Request, sdk: ProviderSdk, body: bytes, key: tuple[str, str] | None) -> UpstreamRequest:
    """A request to the provider. The client's headers go along, but those that are not the provider's business."""
    fields = {name.lower(): value for name, value in request.headers.items()}
    passed = {name: value for name, value in fields.items() if not _is_ours(name)}
    path = request.scope["raw_path"].decode("latin-1").removeprefix(sdk.base)
    query = f"?{request.url.query}" if request.url.query else ""
    return UpstreamRequest(
        method=request.method, path=f"{path}{query}", headers={**passed, **UNCOMPRESSED}, body=body, key=key
    )


def _is_ours(name: str) -> bool:
    return name in KEPT_BACK or name.startswith((FORWARDED, BROWSERS))


# Described by their providers, not by us.
ROUTES = (
    *[Route(method="POST", path=sdk.path, handler=_answering_sdks(_relay), tag="") for sdk in SDKS],
    *[Route(method="POST", path=path, handler=_answering_sdks(_pass_on), tag="") for sdk in SDKS for path in sdk.also],
    Route(method="GET", path=MODELS, handler=_answering_sdks(_pass_on), tag=""),
    Route(method="GET", path=f"{MODELS}/{{name}}", handler=_answering_sdks(_pass_on), tag=""),
)
