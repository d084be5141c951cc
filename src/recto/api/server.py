"""The HTTP surface: routes, and nothing that decides. What it needs it is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass
from datetime import datetime

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from recto.api.bodies import (
    NUL,
    TooLarge,
    admitted_row,
    check_after,
    check_tools,
    parse_after,
    parse_input,
    protocol_of,
    read_body,
    run_row,
)
from recto.api.gate import Gate
from recto.api.problems import TOO_LARGE, problem, refuse
from recto.api.streams import stream, stream_new
from recto.engine.hub import Hub
from recto.errors import NotFound, RectoError, StoreError
from recto.page.canonical import Json, dump
from recto.page.events import RunFinished, RunStarted, encode_event
from recto.page.wire.agui_input import RunInput
from recto.store.ports import Admission, Admitted, Cancel, StoredRun
from recto.store.store import Store

RUNS = "/api/v1/agent/runs"
STREAM = "text/event-stream"
# Whoever comes to a server on this machine; users have names once there is more than one.
LOCAL = "local"


@dataclass(frozen=True, kw_only=True)
class Backend:
    """What the routes lead to. `cancel` tells a run at work here that it is to end, `problem` why none is begun.

    `tool_names` are those of the agent's own tools.
    """

    store: Store
    hub: Hub
    agent: str
    admit: Callable[[Admission], Awaitable[Admitted]]
    cancel: Callable[[str], None]
    problem: Callable[[], str | None]
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    tool_names: frozenset[str] = frozenset()


def make_api(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> FastAPI:
    """The application. Its `state.backend` is set by whoever starts it."""
    api = FastAPI(title="Recto", lifespan=lifespan, docs_url="/docs", redoc_url=None)
    api.add_exception_handler(RectoError, refuse)
    api.add_middleware(Gate)
    for path, methods, handler in (
        (RUNS, ["POST"], start_run),
        (f"{RUNS}/{{id}}", ["GET"], get_run),
        (f"{RUNS}/{{id}}/events", ["GET"], get_events),
        (f"{RUNS}/{{id}}/cancel", ["POST"], cancel_run),
        ("/healthz", ["GET"], get_health),
        ("/readyz", ["GET"], get_readiness),
    ):
        api.add_api_route(path, handler, methods=methods, response_model=None)
    return api


async def start_run(request: Request) -> Response:
    """Admit a run: 202, or its events with `Accept: text/event-stream`. It is stored before it is answered."""
    backend = _backend(request)
    try:
        body = await read_body(request)
    except TooLarge as error:
        return problem(TOO_LARGE, "too_large", str(error))
    run_input = parse_input(body)
    check_tools(run_input, backend.tool_names)
    admission = _admission(backend, run_input, body)
    if STREAM in request.headers.get("accept", ""):
        return await _stream_run(backend, admission, run_input.protocol)
    admitted = await backend.admit(admission)
    return _json(admitted_row(admitted.run), 202)


async def _stream_run(backend: Backend, admission: Admission, protocol: str | None) -> Response:
    with ExitStack() as hearing:
        listener = hearing.enter_context(backend.hub.listening(admission.id))
        admitted = await backend.admit(admission)
        if admitted.is_new:
            return stream_new(backend.hub, hearing.pop_all(), listener, admitted.run, protocol)
    return stream(backend.hub, admitted.run, 0, protocol)


async def get_run(request: Request) -> Response:
    """How a run is doing."""
    return _json(run_row(await _run(request)))


async def get_events(request: Request) -> Response:
    """A run's events from any number on, while it runs or later."""
    after, run = parse_after(request), await _run(request)
    check_after(after, run)
    protocol = request.query_params.get("protocolVersion") or protocol_of(run)
    return stream(_backend(request).hub, run, after, protocol)


async def cancel_run(request: Request) -> Response:
    """End a run. Asking twice, or after its end, changes nothing."""
    backend, run = _backend(request), await _run(request)
    ended = RunFinished(thread=run.thread, run=run.name, outcome="cancelled")
    told = [*encode_event(RunStarted(thread=run.thread, run=run.name)), *encode_event(ended)]
    wish = Cancel(reason="cancelled by its user", now=backend.clock(), events=told)
    run = await backend.store.cancel(run, wish)
    backend.cancel(run.id)
    return _json(run_row(run))


async def get_health() -> Response:
    """The process answers."""
    return _json({"status": "ok"})


async def get_readiness(request: Request) -> Response:
    """Whether runs can be admitted and worked on."""
    backend = _backend(request)
    reason = None
    try:
        await backend.store.probe()
    except StoreError as error:
        reason = str(error)
    # After the probe: it is what finds out that a full disk has room again.
    reason = reason or backend.problem()
    return problem(503, "not_ready", reason) if reason else _json({"status": "ready"})


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


async def _run(request: Request) -> StoredRun:
    id = request.path_params["id"]
    if NUL in id:
        raise NotFound(what="run", id=id)
    return await _backend(request).store.find_run(LOCAL, id)


def _admission(backend: Backend, run_input: RunInput, body: bytes) -> Admission:
    return Admission(
        id=backend.new_id(),
        name=run_input.run,
        owner=LOCAL,
        thread=run_input.thread.lower(),
        agent=backend.agent,
        input=body,
        response_id=backend.new_id(),
        created=backend.clock(),
    )


def _json(value: Json, status: int = 200) -> Response:
    return Response(dump(value), status, media_type="application/json")
