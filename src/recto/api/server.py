"""The HTTP surface: all routes, and nothing that decides. What they need they are given."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from recto.api import agents, health, operations, runs
from recto.api.auth import Doorman
from recto.api.gate import Gate, GateRules
from recto.api.problems import refuse, refuse_fields, refuse_http
from recto.api.route import add
from recto.errors import RectoError

ROUTES = (*runs.ROUTES, *agents.ROUTES, *operations.ROUTES, *health.ROUTES)


def make_api(
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]], doorman: Doorman, rules: GateRules
) -> FastAPI:
    """The application. Its `state.backend` is set by whoever starts it."""
    api = FastAPI(title="Recto", lifespan=lifespan, docs_url="/docs", redoc_url=None)
    api.add_exception_handler(RectoError, refuse)
    api.add_exception_handler(RequestValidationError, refuse_fields)
    api.add_exception_handler(HTTPException, refuse_http)
    api.add_middleware(Gate, doorman=doorman, rules=rules)
    for route in ROUTES:
        add(api, route)
    return api
