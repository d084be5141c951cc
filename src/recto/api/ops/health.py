"""Health checks. They need no credentials and reveal nothing about users."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, json_answer
from recto.api.problems import problem
from recto.api.route import Route
from recto.errors import StorageDown, StoreError

LOGGER = logging.getLogger("recto.health")
NOT_READY = "No run can be admitted or worked on at present. The server's log says why."


class HealthShape(TypedDict):
    """Health of the server."""

    status: str


async def get_health(_request: Request) -> Response:
    """Respond if the process is alive."""
    return json_answer({"status": "ok"})


async def get_readiness(request: Request) -> Response:
    """Check that the server can admit runs, execute them and accept files."""
    backend = backend_of(request)
    reason = None
    try:
        await backend.store.probe()
        await backend.files.probe()
    except (StoreError, StorageDown) as error:
        reason = str(error)
    # After the probe, which notices that a full disk has space again.
    reason = reason or backend.problem()
    _log_change(request, reason)
    return problem(503, "not_ready", NOT_READY) if reason else json_answer({"status": "ready"})


def _log_change(request: Request, reason: str | None) -> None:
    """Log the reason when it changes. It may name hosts and files, so the response does not contain it."""
    state = request.app.state
    if reason and reason != getattr(state, "logged_reason", None):
        LOGGER.warning("The server is not ready: %s", reason)
    state.logged_reason = reason


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
