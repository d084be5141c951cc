"""All routes of the server, and the application made of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache, partial

from recto.api import accounts, agents, operations
from recto.api.access.auth import Authenticator
from recto.api.access.gate import Gate, GateRules
from recto.api.copilotkit import agent_routes, info, thread_routes
from recto.api.description import describe, get_description, get_docs
from recto.api.files import attachments, datasets, serving
from recto.api.gateway import routes as gateway
from recto.api.route import Route
from recto.api.router import Api
from recto.api.runs import ag_ui, chat
from recto.api.runs import routes as runs
from recto.api.threads import calls, rollback, thread_messages
from recto.api.threads import routes as threads
from recto.api.web_page import ASSETS, HOME, ICON, WebPage, get_asset, get_icon, get_web_page

# The order of the description.
ROUTES = tuple(
    route
    for module in (
        *(runs, ag_ui, chat, calls, threads, rollback, thread_messages),
        *(attachments, serving, datasets, agents, accounts),
        *(info, agent_routes, thread_routes, operations),
    )
    for route in module.ROUTES
)


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
GATEWAY_ONLY = (*gateway.ROUTES, *operations.ROUTES, *READ_ROUTES)


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
