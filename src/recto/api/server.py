"""All routes of the server, and the application made of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache, partial

from recto.api.access.auth import Authenticator
from recto.api.access.gate import Gate, GateRules
from recto.api.copilotkit import agent_routes, info, inspector, single_endpoint, thread_routes
from recto.api.description import describe
from recto.api.docs_page import get_description, get_docs
from recto.api.files import attachments, datasets, serving
from recto.api.gateway import routes as gateway
from recto.api.ops import agents, health, operations
from recto.api.route import Route
from recto.api.router import Api
from recto.api.runs import ag_ui, chat, resume
from recto.api.runs import routes as runs
from recto.api.threads import calls, file_changes, history, previews, thread_messages, turning_back
from recto.api.threads import routes as threads
from recto.api.users import me, profile, savings_route
from recto.api.web_page import ASSETS, HOME, ICON, WebPage, get_asset, get_icon, get_web_page

ROUTES = (
    *runs.ROUTES,
    *resume.ROUTES,
    *ag_ui.ROUTES,
    *chat.ROUTES,
    *calls.ROUTES,
    *threads.ROUTES,
    *turning_back.ROUTES,
    *file_changes.ROUTES,
    *previews.ROUTES,
    *thread_messages.ROUTES,
    *history.ROUTES,
    *attachments.ROUTES,
    *serving.ROUTES,
    *datasets.ROUTES,
    *agents.ROUTES,
    *me.ROUTES,
    *profile.ROUTES,
    *savings_route.ROUTES,
    *info.ROUTES,
    *agent_routes.ROUTES,
    *thread_routes.ROUTES,
    *inspector.ROUTES,
    *single_endpoint.ROUTES,
    *operations.ROUTES,
    *health.ROUTES,
)


# For people: the web page and the API description. They are not part of the description.
PAGES = (
    Route(method="GET", path=HOME, handler=get_web_page, tag="", is_open=True),
    Route(method="GET", path=ICON, handler=get_icon, tag="", is_open=True),
    Route(method="GET", path=f"{ASSETS}{{name}}", handler=get_asset, tag="", is_open=True),
    Route(method="GET", path="/openapi.json", handler=get_description, tag="", is_open=True),
    Route(method="GET", path="/docs", handler=get_docs, tag="", is_open=True),
)


# Routes of a gateway-only server: the gateway, its operations, and reading its conversations.
LOOKS = tuple([route for route in (*threads.ROUTES, *calls.ROUTES, *savings_route.ROUTES) if route.method == "GET"])
GATEWAY_ONLY = (*gateway.ROUTES, *operations.ROUTES, *health.ROUTES, *LOOKS)


def make_api(
    lifespan: Callable[[Api], AbstractAsyncContextManager[None]],
    authenticator: Authenticator,
    rules: GateRules,
    *,
    gateway_only: bool = False,
) -> Api:
    """Return the application. The caller sets `state.backend`."""
    gate = partial(Gate, authenticator=authenticator, rules=rules)
    served = GATEWAY_ONLY if gateway_only else (*ROUTES, *gateway.ROUTES, *PAGES)
    api = Api(served, gate=gate, lifespan=lifespan)
    api.state.web_page = WebPage()
    api.state.describe = cache(partial(describe, ROUTES))
    return api
