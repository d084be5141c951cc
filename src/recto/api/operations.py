"""Routes for operators: health, version and metrics. They reveal nothing about users."""

from __future__ import annotations

import logging
from importlib.metadata import version

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, is_operator
from recto.api.problems import operator_problem, problem
from recto.api.route import Route
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
    # After the probe, which notices that a full disk has space again.
    reason = reason or backend.operations.problem()
    # Logged when it changes. It may name hosts and files, so the response does not contain it.
    state = request.app.state
    if reason and reason != getattr(state, "logged_reason", None):
        LOGGER.warning("The server is not ready: %s", reason)
    state.logged_reason = reason
    return problem(503, "not_ready", NOT_READY) if reason else {"status": "ready"}


ROUTES = (
    Route("GET", "/version", get_version, "server", is_open=True),
    Route("GET", "/metrics", get_metrics, "server", text="text/plain"),
    Route("GET", "/healthz", get_health, "server", is_open=True),
    Route("GET", "/readyz", get_readiness, "server", is_open=True),
)
