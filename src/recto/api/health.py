"""Routes that say whether the server is well. They need no credentials and tell nothing of anybody."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import backend_of, json_answer
from recto.api.problems import problem
from recto.api.route import Route
from recto.errors import StoreError


class HealthShape(BaseModel):
    """How the server is."""

    status: str


async def get_health() -> Response:
    """The process answers."""
    return json_answer({"status": "ok"})


async def get_readiness(request: Request) -> Response:
    """Whether runs can be admitted and worked on."""
    backend = backend_of(request)
    reason = None
    try:
        await backend.store.probe()
    except StoreError as error:
        reason = str(error)
    # After the probe: it is what finds out that a full disk has room again.
    reason = reason or backend.problem()
    return problem(503, "not_ready", reason) if reason else json_answer({"status": "ready"})


ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        handler=get_health,
        tag="server",
        answer=HealthShape,
        is_open=True,
        examples={"answer": {"status": "ok"}},
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=get_readiness,
        tag="server",
        answer=HealthShape,
        is_open=True,
        examples={"answer": {"status": "ready"}},
    ),
)
