"""Agent routes of CopilotKit: info, which its client requests first, then run, connect, stop and suggest."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Annotated, Literal, NotRequired
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message
from typing_extensions import TypedDict

from recto.agents.agent import CHAT, Agent
from recto.api.backend import AgentCatalog, backend_of, user_of
from recto.api.bodies import read_body
from recto.api.route import THREAD, Route, in_path
from recto.api.runs.admit import check_daily_tokens, check_name, thread_of
from recto.api.runs.ag_ui import ListBody, admit_client_list, read_list_body
from recto.api.runs.routes import end_run
from recto.api.runs.stream_join import event_renderer, join_stream, snapshot_stream
from recto.api.runs.streams import EventStream
from recto.conversation.events import Event, RunFinished, RunStarted, ToolCallStarted, encode_event
from recto.conversation.input import agui
from recto.conversation.input.suggestion_input import SUGGEST, SuggestionInput, forced_tool, read_suggestion
from recto.conversation.json import Json, Object, dump, load_object, optional_text, text_field
from recto.errors import NotFound, WireError
from recto.store.ports import StoredEvent

BASE = "/api/v1/copilotkit"
ONE = f"{BASE}/agent/{{agent}}"
# Id by which CopilotKit's chat names the default agent.
DEFAULT = "default"
# Version of the CopilotKit runtime that these routes implement.
VERSION = "1.75.0"
AgentId = Annotated[str, in_path("The agent's name; `default` is the default agent.")]
ThreadName = Annotated[str, in_path("The thread's id, or the client's name of it.")]
BAD_STOP = 'The body must be {"runId": "..."} with the run to stop, or empty to stop the active one.'
STOPPED: Mapping[str, str] = {"type": "RUN_ERROR", "message": "Run stopped by user", "code": "STOPPED"}
# Headers that describe the envelope's body, not the nested body.
BODY_HEADERS = (b"content-length", b"content-encoding", b"transfer-encoding")
RESOURCES = "/threads"
# Maximum size of an envelope without its nested body.
ENVELOPE_BYTES = 4_096
ERRORS = (404, 413, 422)


class TransportShape(TypedDict):
    """Delivery of an agent's events."""

    streaming: bool
    resumable: bool


class CapabilitiesShape(TypedDict):
    """Capabilities of an agent."""

    transport: TransportShape


class KitAgentShape(TypedDict):
    """An agent in CopilotKit's form."""

    name: str
    description: str
    className: str
    capabilities: CapabilitiesShape


class EndpointsShape(TypedDict):
    """The supported thread routes."""

    list: bool
    inspect: bool
    mutations: bool
    realtimeMetadata: bool


class SingleRouteShape(TypedDict):
    """Features of the single endpoint beyond runs."""

    resourceOperations: bool
    threadEndpoints: EndpointsShape


class InfoShape(TypedDict):
    """Agents and features of the server."""

    version: str
    agents: Mapping[str, KitAgentShape]
    mode: Literal["sse"]
    threadEndpoints: EndpointsShape
    singleRoute: SingleRouteShape
    suggestions: bool
    audioFileTranscriptionEnabled: bool
    a2uiEnabled: bool
    openGenerativeUIEnabled: bool
    telemetryDisabled: bool


# Clients poll lists; changes are not pushed.
ENDPOINTS: EndpointsShape = {"list": True, "inspect": True, "mutations": True, "realtimeMetadata": False}


class StopBody(BaseModel):
    """The run to stop; by default the active one."""

    run_id: str | None = Field(default=None, alias="runId", min_length=1)


class StopShape(TypedDict):
    """The result of a stop request. `message` explains why no run was stopped."""

    stopped: bool
    message: NotRequired[str]
    interrupt: NotRequired[Mapping[str, str]]


class EnvelopeBody(BaseModel):
    """The name of a route, its path parameters and its body."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"method": "agent/stop", "params": {"agentId": DEFAULT, "threadId": THREAD}}}
    )

    method: Literal["info", "agent/run", "agent/connect", "agent/suggest", "agent/stop", "resource/request"]
    params: dict[str, str] | None = None
    body: dict[str, object] | None = None


class EnvelopeAnswer(TypedDict):
    """The response of the named route."""


@dataclass(frozen=True, kw_only=True)
class NestedRequest:
    """The request in an envelope. `target` is the path and query after the base path."""

    method: str
    target: str
    body: bytes = b""


def find_kit_agent(agents: AgentCatalog, id: str) -> Agent:
    """Return an agent by its CopilotKit id."""
    if id == DEFAULT:
        return agents.by_name.get(agents.default, CHAT)
    if id not in agents.by_name:
        raise NotFound(what="agent", id=id)
    return agents.by_name[id]


async def get_copilotkit_info(request: Request) -> InfoShape:
    """Return the agents and features for CopilotKit's client. `default` is the default agent."""
    backend = backend_of(request)
    agents: dict[str, KitAgentShape] = {
        id: {
            "name": id,
            "description": find_kit_agent(backend.agents, id).description,
            "className": "RectoAgent",
            "capabilities": {"transport": {"streaming": True, "resumable": True}},
        }
        for id in (DEFAULT, *backend.agents.by_name)
    }
    return {
        "version": VERSION,
        "agents": agents,
        "mode": "sse",
        "threadEndpoints": ENDPOINTS,
        "singleRoute": {"resourceOperations": True, "threadEndpoints": ENDPOINTS},
        "suggestions": backend.runs.suggestions.is_on,
        "audioFileTranscriptionEnabled": False,
        "a2uiEnabled": False,
        "openGenerativeUIEnabled": False,
        "telemetryDisabled": True,
    }


async def run_copilotkit_agent(request: Request, agent: AgentId) -> Response:
    """Answer the new messages of a chat, as `POST /api/v1/agent/ag-ui` does.

    Clients without a suggestion route request suggestions here; such a request starts no run.
    """
    kit_agent, body = find_kit_agent(backend_of(request).agents, agent), await read_list_body(request)
    value = load_object(body) if SUGGEST.encode() in body else None
    if value is not None and forced_tool(value) == SUGGEST:
        return await _stream_suggestion(request, kit_agent, value)
    return await admit_client_list(request, body, None if agent == DEFAULT else agent)


async def connect_copilotkit_agent(request: Request, agent: AgentId) -> Response:
    """Stream a thread as a run, followed by its active run if there is one.

    An unknown thread yields no events. Nothing is stored.
    """
    backend, owner = backend_of(request), user_of(request).name
    find_kit_agent(backend.agents, agent)
    body = _parse_object(await read_list_body(request))
    name, run = (text_field(body, agui.field_name(body, field), "RunAgentInput") for field in ("threadId", "runId"))
    protocol = optional_text(body, agui.field_name(body, "protocolVersion"), "RunAgentInput")
    check_name(name)
    thread = thread_of(owner, name)
    thread_name = None if name == thread else name
    if open_runs := await backend.store.runs.list_open(owner, thread):
        return await join_stream(request, open_runs[0], thread_name=thread_name, protocol=protocol)
    row = await backend.store.threads.get_for_admission(owner, thread)
    if row and row.is_own:
        return await snapshot_stream(request, thread, run, thread_name=thread_name, protocol=protocol)
    with backend.runs.streams.hold(owner) as stack:
        return EventStream(_no_events(), event_renderer(backend, protocol), None, stack.pop_all())


def _parse_object(body: bytes) -> Object:
    value = load_object(body)
    if value is None:
        raise WireError(where="body", problem="must be a JSON object")
    return value


async def _no_events() -> AsyncGenerator[Sequence[StoredEvent]]:
    for event in ():
        yield event


async def stop_copilotkit_agent(request: Request, agent: AgentId, thread: ThreadName) -> StopShape:
    """Stop the named run of a thread, or all open ones. Output stays."""
    backend, owner = backend_of(request), user_of(request).name
    find_kit_agent(backend.agents, agent)
    body = await read_body(request, name="Request body")
    match load_object(body if body.strip() else b"{}"):
        case {"runId": str(run_name), **rest} if run_name.strip() and not rest:
            name = run_name
        case {**fields} if not fields:
            name = None
        case _:
            raise _bad_request(BAD_STOP)
    open_runs = await backend.store.runs.list_open(owner, thread_of(owner, thread))
    # Without a name, end all runs, because a queued run would start once the active one ends.
    runs = [run for run in open_runs if name in (None, run.name)]
    if runs:
        for run in reversed(runs):
            await end_run(backend, run)
        return {"stopped": True, "interrupt": STOPPED}
    if name is None:
        return {"stopped": False, "message": f"No active run for thread '{thread}'."}
    return {"stopped": False, "message": f"Run '{name}' is not the active run for thread '{thread}'."}


async def suggest_by_copilotkit_agent(request: Request, agent: AgentId) -> Response:
    """Suggest what the user could say next, as a call of the tool named in `forwardedProps.toolChoice`.

    Makes one model call. Stores no thread and no run.
    """
    kit_agent = find_kit_agent(backend_of(request).agents, agent)
    return await _stream_suggestion(request, kit_agent, _parse_object(await read_list_body(request)))


async def _stream_suggestion(request: Request, agent: Agent, value: Json) -> Response:
    """Stream a suggestion. The stream is empty if suggestions are disabled."""
    backend, owner, suggestion = backend_of(request), user_of(request).name, read_suggestion(value)
    await backend.runs.schemas.admit((suggestion.tool,))
    if backend.runs.suggestions.is_on:
        await check_daily_tokens(backend, owner)
        backend.runs.suggestions.check_rate(owner)
    events = backend.runs.suggestions.events(owner, agent, suggestion)
    with backend.runs.streams.hold(owner) as stack:
        batches = _number_events(events, suggestion)
        return EventStream(batches, event_renderer(backend, suggestion.protocol), None, stack.pop_all())


async def _number_events(
    events: AsyncGenerator[Event], suggestion: SuggestionInput
) -> AsyncGenerator[Sequence[StoredEvent]]:
    """Yield the numbered events of a suggestion, between RunStarted and RunFinished."""
    numbers, pending = count(1), ()

    def number(event: Event) -> Sequence[StoredEvent]:
        return [StoredEvent(number=next(numbers), body=body) for body in encode_event(event)]

    yield number(RunStarted(thread=suggestion.thread, run=suggestion.run))
    async with aclosing(events):
        async for event in events:
            pending = (event.call,) if isinstance(event, ToolCallStarted) else pending
            yield number(event)
    yield number(RunFinished(thread=suggestion.thread, run=suggestion.run, pending=pending))


async def ask_copilotkit(request: Request) -> Response:
    """Call one of CopilotKit's routes by an envelope."""
    limit = backend_of(request).bodies.agui_bytes + ENVELOPE_BYTES
    nested = read_envelope(await read_body(request, limit, "Request body"))
    path, _, query = f"{BASE}{nested.target}".partition("?")
    scope = {
        **request.scope,
        "method": nested.method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [field for field in request.scope["headers"] if field[0] not in BODY_HEADERS],
    }
    # The route receives the nested body, then the messages of the connection.
    messages: list[Message] = [{"type": "http.request", "body": nested.body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await request.receive()

    return await request.app.ask(Request(scope, receive))


def read_envelope(body: bytes) -> NestedRequest:
    """Parse an envelope. Raises HTTPException for an invalid one."""
    envelope = load_object(body)
    if envelope is None:
        raise _bad_request("The body must be a JSON object with `method`.")
    name, params, inner = envelope.get("method"), envelope.get("params"), envelope.get("body")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise _bad_request(f"`method` must be one of: {', '.join(KINDS)}.")
    return kind(params if isinstance(params, dict) else {}, inner)


def _agent_action(action: str) -> Callable[[Object, Json], NestedRequest]:
    def make(params: Object, body: Json) -> NestedRequest:
        if body is None:
            raise _bad_request("`body` is missing. Send a RunAgentInput.")
        return NestedRequest(method="POST", target=f"/agent/{_part(params, 'agentId')}/{action}", body=dump(body))

    return make


def _stop(params: Object, body: Json) -> NestedRequest:
    target = f"/agent/{_part(params, 'agentId')}/stop/{_part(params, 'threadId')}"
    return NestedRequest(method="POST", target=target, body=b"" if body is None else dump(body))


def _resource(params: Object, body: Json) -> NestedRequest:
    path, method = _text(params, "path"), _text(params, "httpMethod").upper()
    if path.partition("?")[0] != RESOURCES and not path.startswith(f"{RESOURCES}/"):
        raise _bad_request(f"`params.path` must begin with {RESOURCES}.")
    if not (method.isascii() and path.isascii() and path.isprintable()):
        raise _bad_request("`params.path` and `params.httpMethod` must be valid in an HTTP request.")
    return NestedRequest(method=method, target=path, body=b"" if body is None or method == "GET" else dump(body))


KINDS: Mapping[str, Callable[[Object, Json], NestedRequest]] = {
    "info": lambda _params, _body: NestedRequest(method="GET", target="/info"),
    "agent/run": _agent_action("run"),
    "agent/connect": _agent_action("connect"),
    "agent/suggest": _agent_action("suggest"),
    "agent/stop": _stop,
    "resource/request": _resource,
}


def _part(params: Object, name: str) -> str:
    return quote(_text(params, name), safe="")


def _text(params: Object, name: str) -> str:
    text = params.get(name)
    if isinstance(text, str) and text.strip():
        return text
    raise _bad_request(f"`params.{name}` is missing. Send a text.")


def _bad_request(detail: str) -> HTTPException:
    return HTTPException(HTTPStatus.BAD_REQUEST, detail)


post = partial(Route, "POST", tag="copilotkit")
ROUTES = (
    Route("GET", f"{BASE}/info", get_copilotkit_info, "copilotkit"),
    post(f"{ONE}/run", run_copilotkit_agent, body=ListBody, streams=True, errors=(*ERRORS, 409)),
    post(f"{ONE}/connect", connect_copilotkit_agent, body=ListBody, streams=True, errors=ERRORS),
    post(f"{ONE}/stop/{{thread}}", stop_copilotkit_agent, body=StopBody, needs_body=False, errors=(404, 413)),
    post(f"{ONE}/suggest", suggest_by_copilotkit_agent, body=ListBody, streams=True, errors=ERRORS),
    post(BASE, ask_copilotkit, body=EnvelopeBody, streams=True, errors=(*ERRORS, 409), json=EnvelopeAnswer),
)
