"""The HTTP surface: all routes, and nothing that decides. What they need they are given."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import cast

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from recto.api.access.auth import Authenticator
from recto.api.access.gate import Gate, GateRules
from recto.api.codings import Packing
from recto.api.docs_page import describe, get_description, get_docs
from recto.api.files import attachments, datasets, serving
from recto.api.ops import agents, health, operations
from recto.api.problems import refuse, refuse_fields, refuse_http
from recto.api.route import add, with_examples
from recto.api.runs import chat
from recto.api.runs import routes as runs
from recto.api.threads import calls, history
from recto.api.threads import routes as threads
from recto.api.users import me, profile
from recto.conversation.json import Json
from recto.errors import RectoError

ROUTES = (
    *runs.ROUTES,
    *chat.ROUTES,
    *calls.ROUTES,
    *threads.ROUTES,
    *history.ROUTES,
    *attachments.ROUTES,
    *serving.ROUTES,
    *datasets.ROUTES,
    *agents.ROUTES,
    *me.ROUTES,
    *profile.ROUTES,
    *operations.ROUTES,
    *health.ROUTES,
)


def make_api(
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]], authenticator: Authenticator, rules: GateRules
) -> FastAPI:
    """The application. Its `state.backend` is set by whoever starts it."""
    api = FastAPI(title="Recto", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    api.add_exception_handler(RectoError, refuse)
    api.add_exception_handler(RequestValidationError, refuse_fields)
    api.add_exception_handler(HTTPException, refuse_http)
    api.add_middleware(Packing)
    api.add_middleware(Gate, authenticator=authenticator, rules=rules)
    for route in ROUTES:
        add(api, route)
    described = describe(api)
    api.openapi = cache(lambda: with_examples(cast("dict[str, Json]", described()), ROUTES))
    api.add_route("/openapi.json", get_description)
    api.add_route("/docs", get_docs)
    return api
