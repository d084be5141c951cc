"""Routes for whoever runs the server: its version, its metrics. They tell nothing of any user."""

from __future__ import annotations

from importlib.metadata import version

from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from recto.api.access.audit import audit
from recto.api.backend import backend_of, json_answer, user_of
from recto.api.problems import problem
from recto.api.route import Route

NAME = "recto"
PROTOCOLS = ("1.0", "0.0")
NOT_YOURS = "Only an operator of this server may see its metrics. Operators are named in RECTO_OPERATORS."


class VersionShape(BaseModel):
    """What answers here."""

    name: str
    version: str
    protocols: list[str]


async def get_version() -> Response:
    """Which version of Recto this is, and the versions of AG-UI it speaks."""
    return json_answer({"name": NAME, "version": version(NAME), "protocols": list(PROTOCOLS)})


async def get_metrics(request: Request) -> Response:
    """Counters for Prometheus: runs, model calls, tokens, prices, tokens saved by folding, waiting, errors by kind."""
    backend = backend_of(request)
    if user_of(request).name not in backend.operators:
        audit(request, "not_an_operator", status=403)
        return problem(403, "not_an_operator", NOT_YOURS)
    return Response(backend.metrics(), media_type=CONTENT_TYPE_LATEST)


ROUTES = (
    Route(
        method="GET",
        path="/version",
        handler=get_version,
        tag="server",
        answer=VersionShape,
        examples={"answer": {"name": NAME, "version": "0.1.0", "protocols": list(PROTOCOLS)}},
    ),
    Route(method="GET", path="/metrics", handler=get_metrics, tag="server", text="text/plain"),
)
