"""Routes for operators: version and metrics. They reveal nothing about users."""

from __future__ import annotations

from importlib.metadata import version

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, is_operator, json_answer
from recto.api.problems import refuse_user
from recto.api.route import Route

NAME = "recto"
PROTOCOLS = ("1.0", "0.0")


class VersionShape(TypedDict):
    """Name and version of the server."""

    name: str
    version: str
    protocols: list[str]


async def get_version(_request: Request) -> Response:
    """Return the version of Recto and the supported AG-UI versions."""
    answer: VersionShape = {"name": NAME, "version": version(NAME), "protocols": list(PROTOCOLS)}
    return json_answer(answer)


async def get_metrics(request: Request) -> Response:
    """Return Prometheus metrics: runs, model calls, tokens, prices, tokens saved by folding, queues, errors by kind."""
    if not is_operator(request):
        return refuse_user(request, "see its metrics")
    return Response(backend_of(request).metrics(), media_type=CONTENT_TYPE_LATEST)


ROUTES = (
    Route(
        method="GET",
        path="/version",
        handler=get_version,
        tag="server",
        answer=VersionShape,
        is_open=True,
        examples={"answer": {"name": NAME, "version": "0.1.0", "protocols": list(PROTOCOLS)}},
    ),
    Route(method="GET", path="/metrics", handler=get_metrics, tag="server", text="text/plain"),
)
