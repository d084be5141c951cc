"""The HTTP surface: all routes, and nothing that decides. What they need they are given."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import cast

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from recto.api import (
    agents,
    attachments,
    calls,
    chat,
    datasets,
    health,
    history,
    me,
    operations,
    profile,
    runs,
    serving,
    threads,
)
from recto.api.auth import Doorman
from recto.api.codings import Packing
from recto.api.docs_page import describe, get_description, get_docs
from recto.api.gate import Gate, GateRules
from recto.api.problems import refuse, refuse_fields, refuse_http
from recto.api.route import add, with_examples
from recto.errors import RectoError
from recto.page.canonical import Json

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
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]], doorman: Doorman, rules: GateRules
) -> FastAPI:
    """The application. Its `state.backend` is set by whoever starts it."""
    api = FastAPI(title="Recto", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    api.add_exception_handler(RectoError, refuse)
    api.add_exception_handler(RequestValidationError, refuse_fields)
    api.add_exception_handler(HTTPException, refuse_http)
    api.add_middleware(Packing)
    api.add_middleware(Gate, doorman=doorman, rules=rules)
    for route in ROUTES:
        add(api, route)
    described = describe(api)
    api.openapi = cache(lambda: with_examples(cast("dict[str, Json]", described()), ROUTES))
    api.add_route("/openapi.json", get_description)
    api.add_route("/docs", get_docs)
    return api
