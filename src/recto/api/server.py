"""The application with all its routes, and the routes about the server itself: health, version and metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from importlib.metadata import version

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api import accounts, agents, gateway
from recto.api.access.auth import Authenticator
from recto.api.access.gate import Gate, GateRules
from recto.api.backend import backend_of, is_operator
from recto.api.copilotkit import agent_routes, thread_routes
from recto.api.description import describe, get_description, get_docs
from recto.api.files import attachments, datasets, serving
from recto.api.problems import operator_problem, problem
from recto.api.route import Route
from recto.api.router import Api
from recto.api.runs import ag_ui, chat
from recto.api.runs import routes as runs
from recto.api.threads import calls, rollback, thread_messages
from recto.api.threads import routes as threads
from recto.api.web_page import ASSETS, HOME, ICON, WebPage, get_asset, get_icon, get_web_page
from recto.errors import StorageDown, StoreError

LOGGER = logging.getLogger("recto.health")
NOT_READY = "The server cannot admit or execute runs at present. See its log for the reason."
NAME = "recto"
PROTOCOLS = ("1.0", "0.0")


class HealthShape(TypedDict):
    """Health of the server."""

    status: str


class VersionShape(TypedDict):
    """Name and version of the server."""

    name: str
    version: str
    protocols: list[str]


async def get_version(_request: Request) -> VersionShape:
    """Return the version of Recto and the supported AG-UI versions."""
    return {"name": NAME, "version": version(NAME), "protocols": list(PROTOCOLS)}


async def get_metrics(request: Request) -> Response:
    """Return Prometheus metrics: runs, model calls, tokens, prices, tokens saved by folding, queues, errors by kind."""
    if not is_operator(request):
        return operator_problem(request, "see its metrics")
    return Response(backend_of(request).operations.metrics(), media_type=CONTENT_TYPE_LATEST)


async def get_health(_request: Request) -> HealthShape:
    """Respond if the process is alive."""
    return {"status": "ok"}


async def get_readiness(request: Request) -> HealthShape | Response:
    """Check that the server can admit runs, execute them and accept files."""
    backend = backend_of(request)
    reason = None
    try:
        await backend.store.probe()
        await backend.files.attachments.probe()
    except (StoreError, StorageDown) as error:
        reason = str(error)
    # Ask after the probe, which notices when a full disk has space again.
    reason = reason or backend.operations.problem()
    # Log the reason when it changes. The response omits the reason, which may name hosts and files.
    state = request.app.state
    if reason and reason != getattr(state, "logged_reason", None):
        LOGGER.warning("The server is not ready: %s", reason)
    state.logged_reason = reason
    return problem(503, "not_ready", NOT_READY) if reason else {"status": "ready"}


# Routes of the server itself.
OPERATIONS = (
    Route("GET", "/version", get_version, "server", is_open=True),
    Route("GET", "/metrics", get_metrics, "server", text="text/plain"),
    Route("GET", "/healthz", get_health, "server", is_open=True),
    Route("GET", "/readyz", get_readiness, "server", is_open=True),
)


# Modules with routes, in the order of the API description.
MODULES = (
    *(runs, ag_ui, chat, calls, threads, rollback, thread_messages),
    *(attachments, serving, datasets, agents, accounts, agent_routes, thread_routes),
)
ROUTES = (*[route for module in MODULES for route in module.ROUTES], *OPERATIONS)


# The web page and the API description, which are not part of the description.
PAGES = (
    Route("GET", HOME, get_web_page, is_open=True),
    Route("GET", ICON, get_icon, is_open=True),
    Route("GET", f"{ASSETS}{{name}}", get_asset, is_open=True),
    Route("GET", "/openapi.json", get_description, is_open=True),
    Route("GET", "/docs", get_docs, is_open=True),
)


# Routes of a gateway-only server: the gateway, its operations, and reading its conversations.
READ_ROUTES = tuple([route for route in (*threads.ROUTES, *calls.ROUTES) if route.method == "GET"])
GATEWAY_ONLY = (*gateway.ROUTES, *OPERATIONS, *READ_ROUTES)


def make_api(
    lifespan: Callable[[Api], AbstractAsyncContextManager[None]],
    authenticator: Authenticator,
    rules: GateRules,
    *,
    gateway_only: bool = False,
) -> Api:
    """Return the application. The caller sets `state.backend`."""
    gate = partial(Gate, authenticator=authenticator, rules=rules)
    routes = GATEWAY_ONLY if gateway_only else (*ROUTES, *gateway.ROUTES, *PAGES)
    api = Api(routes, gate=gate, lifespan=lifespan)
    api.state.web_page = WebPage()
    api.state.describe = cache(partial(describe, ROUTES))
    return api
