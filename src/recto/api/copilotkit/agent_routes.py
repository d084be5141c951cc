"""Agent routes of CopilotKit's chat: run, connect, stop, suggest."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC
from http import HTTPStatus
from itertools import count
from typing import Annotated, NotRequired

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.agent import Agent
from recto.api.backend import Backend, backend_of, user_of
from recto.api.bodies import read_body
from recto.api.copilotkit.info import BASE, DEFAULT, ThreadName, kit_agent
from recto.api.parameters import in_path
from recto.api.route import Route
from recto.api.runs.ag_ui import ListBody, admit_client_list, read_list_body
from recto.api.runs.routes import end_run
from recto.api.runs.stream_join import event_renderer, join_stream, snapshot_stream
from recto.api.runs.streams import EventStream
from recto.api.runs.thread_names import check_name, thread_of
from recto.conversation.events import Event, RunFinished, RunStarted, ToolCallStarted, encode_event
from recto.conversation.input import agui
from recto.conversation.input.suggestion_input import SUGGEST, SuggestionInput, forced_tool, read_suggestion
from recto.conversation.json import Json, Object, load_object, optional_text, text_field
from recto.errors import WireError
from recto.store.ports import StoredEvent
from recto.store.runs.admission import day_is_spent

ONE = f"{BASE}/agent/{{agent}}"
AgentId = Annotated[str, in_path("The agent, by its name; `default` is the one that answers if none is named.")]
BAD_STOP = 'The body must be {"runId": "..."} with the run to stop, or empty: then it is the one at work.'
STOPPED: Mapping[str, str] = {"type": "RUN_ERROR", "message": "Run stopped by user", "code": "STOPPED"}
SUGGEST_BODY: Json = {
    "threadId": "s1",
    "runId": "r1",
    "messages": [{"id": "s1", "role": "user", "content": "Suggest what the user could say next."}],
    "tools": [{"name": SUGGEST, "description": "Suggest", "parameters": {"type": "object"}}],
    "forwardedProps": {"toolChoice": {"type": "function", "function": {"name": SUGGEST}}},
}


class StopBody(BaseModel):
    """The run to stop; by default the active one."""

    run_id: str | None = Field(default=None, alias="runId", min_length=1)


class StopShape(TypedDict):
    """The result of a stop request. `message` explains why no run was stopped."""

    stopped: bool
    message: NotRequired[str]
    interrupt: NotRequired[Mapping[str, str]]


async def run_copilotkit_agent(request: Request, agent: AgentId) -> Response:
    """Answer the new messages of a chat, as `POST /api/v1/agent/ag-ui` does.

    Clients without a suggestion route request suggestions here; such a request starts no run.
    """
    answering, body = kit_agent(backend_of(request), agent), await read_list_body(request)
    wished = load_object(body) if SUGGEST.encode() in body else None
    if wished is not None and forced_tool(wished) == SUGGEST:
        return await suggestion(request, answering, wished)
    return await admit_client_list(request, body, None if agent == DEFAULT else agent)


async def connect_copilotkit_agent(request: Request, agent: AgentId) -> Response:
    """Stream a thread as a run, followed by its active run if there is one.

    An unknown thread yields no events. Nothing is stored.
    """
    backend, owner = backend_of(request), user_of(request).name
    kit_agent(backend, agent)
    asked = _object(await read_list_body(request))
    name, run = (text_field(asked, agui.field_name(asked, field), "RunAgentInput") for field in ("threadId", "runId"))
    protocol = optional_text(asked, agui.field_name(asked, "protocolVersion"), "RunAgentInput")
    check_name(name)
    thread = thread_of(owner, name)
    sent_name = None if name == thread else name
    if at_work := await backend.store.runs.list_open(owner, thread):
        return await join_stream(request, at_work[0], thread_name=sent_name, protocol=protocol)
    known = await backend.store.threads.get_for_admission(owner, thread)
    if known and known.is_own:
        return await snapshot_stream(request, thread, run, thread_name=sent_name, protocol=protocol)
    with backend.runs.streams.hold(owner) as held:
        return EventStream(_nothing(), event_renderer(backend, protocol), None, held.pop_all())


def _object(body: bytes) -> Object:
    found = load_object(body)
    if found is None:
        raise WireError(where="body", problem="must be a JSON object")
    return found


async def _nothing() -> AsyncGenerator[Sequence[StoredEvent]]:
    for event in ():
        yield event


async def stop_copilotkit_agent(request: Request, agent: AgentId, thread: ThreadName) -> StopShape:
    """Stop the named run of a thread, or all open ones. Output stays."""
    backend, owner = backend_of(request), user_of(request).name
    kit_agent(backend, agent)
    named = _named_run(await read_body(request, what="Request body"))
    open_runs = await backend.store.runs.list_open(owner, thread_of(owner, thread))
    # Without a name all of them: a queued run would start once the active one ends.
    found = [run for run in open_runs if named in (None, run.name)]
    if found:
        for run in reversed(found):
            await end_run(backend, run)
        stopped: StopShape = {"stopped": True, "interrupt": STOPPED}
        return stopped
    none = f"No active run for thread '{thread}'."
    why = none if named is None else f"Run '{named}' is not the active run for thread '{thread}'."
    return {"stopped": False, "message": why}


def _named_run(body: bytes) -> str | None:
    asked = load_object(body if body.strip() else b"{}")
    if asked is not None and not asked:
        return None
    match asked:
        case {"runId": str(named), **rest} if named.strip() and not rest:
            return named
        case _:
            raise HTTPException(HTTPStatus.BAD_REQUEST, BAD_STOP)


async def suggest_by_copilotkit_agent(request: Request, agent: AgentId) -> Response:
    """Suggest what the user could say next, as a call of the tool named in `forwardedProps.toolChoice`.

    Makes one model call. Stores no thread and no run.
    """
    asked_of = kit_agent(backend_of(request), agent)
    return await suggestion(request, asked_of, _object(await read_list_body(request)))


async def suggestion(request: Request, agent: Agent, wished: Json) -> Response:
    """Stream a suggestion. The stream is empty if suggestions are disabled."""
    backend, owner, asked = backend_of(request), user_of(request).name, read_suggestion(wished)
    await backend.runs.schemas.admit((asked.tool,))
    if backend.runs.suggestions.is_on:
        await _check_day(backend, owner)
        backend.runs.suggestions.check_rate(owner)
    render = event_renderer(backend, asked.protocol)
    with backend.runs.streams.hold(owner) as held:
        return EventStream(_suggested(backend, owner, agent, asked), render, None, held.pop_all())


async def _check_day(backend: Backend, owner: str) -> None:
    most, now = backend.runs.bounds.user_tokens, backend.clock()
    if not most:
        return
    day = await backend.store.users.read_spending(owner, now.astimezone(UTC).date())
    if (spent := day.input + day.output) >= most:
        raise day_is_spent(spent, most, now)


async def _suggested(
    backend: Backend, owner: str, agent: Agent, asked: SuggestionInput
) -> AsyncGenerator[Sequence[StoredEvent]]:
    numbers, pending = count(1), ()

    def told(event: Event) -> Sequence[StoredEvent]:
        return [StoredEvent(number=next(numbers), body=body) for body in encode_event(event)]

    yield told(RunStarted(thread=asked.thread, run=asked.run))
    async with aclosing(backend.runs.suggestions.events(owner, agent, asked)) as events:
        async for event in events:
            pending = (event.call,) if isinstance(event, ToolCallStarted) else pending
            yield told(event)
    yield told(RunFinished(thread=asked.thread, run=asked.run, pending=pending))


ROUTES = (
    Route(
        "POST",
        f"{ONE}/run",
        run_copilotkit_agent,
        "copilotkit",
        body=ListBody,
        streams=True,
        errors=(404, 409, 413, 422),
    ),
    Route(
        "POST",
        f"{ONE}/connect",
        connect_copilotkit_agent,
        "copilotkit",
        body=ListBody,
        streams=True,
        errors=(404, 413, 422),
    ),
    Route(
        "POST",
        f"{ONE}/stop/{{thread}}",
        stop_copilotkit_agent,
        "copilotkit",
        body=StopBody,
        needs_body=False,
        errors=(404, 413),
    ),
    Route(
        "POST",
        f"{ONE}/suggest",
        suggest_by_copilotkit_agent,
        "copilotkit",
        body=ListBody,
        streams=True,
        errors=(404, 413, 422),
    ),
)
