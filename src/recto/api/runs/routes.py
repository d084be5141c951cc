"""Routes of runs: start, resume, status, events, cancel. A user cannot see the runs of others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal, TypeAlias
from uuid import UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import Backend, backend_of, user_of
from recto.api.bodies import NUL, check_run, digest_of, parse_run, read_body, read_object
from recto.api.route import TASK, THREAD, Route, in_header, in_path, in_query
from recto.api.runs.admit import TaskAccepted, admit_run, admitted_row
from recto.api.runs.stream_join import ended_events, event_renderer, join_stream
from recto.api.runs.streams import stream, stream_again
from recto.conversation.events import RunFinished, RunStarted, encode_event
from recto.conversation.history import time_text
from recto.conversation.input.run_input import NOTES, TRACEPARENT, add_notes, stored_dialect
from recto.conversation.json import Json, as_list, dump, load_object
from recto.errors import NotFound, WireError
from recto.store.ports import Cancel, StoredRun

RUNS = "/api/v1/agent/runs"
# Fields, and names in `forwardedProps`, that a continuation does not inherit from the previous run.
OF_RUN = ("state", TRACEPARENT, NOTES)
ONE_TIME_PROPS = ("skill", "scenario", "multitask")
# Maximum digits of an event number. Python raises an error for thousands of digits.
MAX_DIGITS = 18
RunId = Annotated[str, in_path("The run's id: its `taskId`, or the `runId` of its request.")]
RunStatus: TypeAlias = Literal["queued", "running", "finished", "waiting", "cancelled", "failed"]
# Status of a finished run by its outcome.
STATUSES: Mapping[str, RunStatus] = {
    "done": "finished",
    "length": "finished",
    "refused": "finished",
    "nothing_to_compact": "finished",
    "waiting": "waiting",
    "unanswered": "running",
    "cancelled": "cancelled",
}


class MessageShape(BaseModel):
    """An AG-UI message. Further fields depend on its role."""

    model_config = ConfigDict(extra="allow")

    id: str
    role: Literal["user", "assistant", "system", "tool", "developer", "reasoning", "activity"]


class ToolShape(BaseModel):
    """A tool that the client executes."""

    name: str
    description: str | None = ""
    parameters: dict[str, object] | None = Field(default=None, description="JSON Schema")


class ContextShape(BaseModel):
    """Information for the model in this turn."""

    description: str
    value: str


class ResumePayload(BaseModel):
    """A person's decision about a call: approval, changed arguments, and a message for the model."""

    approved: bool
    message: str | None = None
    arguments: dict[str, object] | None = Field(default=None, description="Replaces the arguments of the call.")


class ResumeShape(BaseModel):
    """The answer to an interrupt. `cancelled` denies the call."""

    interrupt_id: str = Field(alias="interruptId")
    status: Literal["resolved", "cancelled"]
    payload: ResumePayload | None = Field(default=None, description="Required if `status` is `resolved`.")


class RunBody(BaseModel):
    """AG-UI's RunAgentInput. Unknown fields are ignored; snake_case is accepted.

    With `resume`, which answers interrupts of the thread, `messages` may be empty.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "threadId": THREAD,
                "runId": "run-001",
                "messages": [{"id": "msg-001", "role": "user", "content": "What is 12*7?"}],
                "forwardedProps": {"agent": "chat"},
            }
        }
    )

    thread_id: str = Field(alias="threadId", json_schema_extra={"format": "uuid"})
    run_id: str = Field(alias="runId", min_length=1, max_length=128)
    parent_run_id: str | None = Field(default=None, alias="parentRunId")
    state: object = None
    messages: list[MessageShape] = Field(max_length=200)
    tools: list[ToolShape] | None = []
    context: list[ContextShape] | None = []
    forwarded_props: dict[str, object] | None = Field(default=None, alias="forwardedProps")
    resume: list[ResumeShape] | None = None


class ResumeBody(BaseModel):
    """Answers to some or all of the waiting interrupts."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"resume": [{"interruptId": TASK, "status": "resolved", "payload": {"approved": True}}]}
        }
    )

    resume: list[ResumeShape] = Field(min_length=1)


class RunShape(TaskAccepted):
    """A run and its status."""

    agent: str
    status: RunStatus
    started: str | None
    ended: str | None
    outcome: str | None
    error: str | None
    usage: Mapping[str, object] | None
    calls: int
    lastEventId: int  # noqa: N815 - the name it has in JSON


async def start_run(request: Request) -> TaskAccepted | Response:
    """Start a run: 202 once it is stored, or its events with `Accept: text/event-stream`.

    A repeated request returns the same run. `forwardedProps` may name `agent`, `timezone`, `multitask` (`enqueue`,
    `reject` or `interrupt`), `skill`, `scenario`, `voice_mode` and `datasets`.
    """
    run_request = parse_run(await read_body(request))
    return await admit_run(request, run_request, fallback=backend_of(request).agents.default)


async def resume_run(request: Request, id: RunId) -> TaskAccepted | Response:
    """Answer interrupts of a run. Responds with the continuation run, as `POST /api/v1/agent/runs` does.

    Repeated answers return the same run. It inherits the tools, context and options of the previous run.
    """
    run, body = await find_run(request, id), await read_object(request)
    resume = body.get("resume")
    if not as_list(resume, "resume"):
        raise WireError(where="resume", problem="is empty. Answer at least one interrupt")
    previous = load_object(run.input) or {}
    props = previous.get("forwardedProps", previous.get("forwarded_props"))
    value: dict[str, Json] = {
        **{name: field for name, field in previous.items() if name not in OF_RUN},
        "threadId": run.thread,
        # Derived from the answers, so repeated answers return the same run.
        "runId": str(uuid5(UUID(run.id), dump(resume).decode())),
        "parentRunId": run.name,
        "messages": [],
        "forwardedProps": {name: field for name, field in props.items() if name not in ONE_TIME_PROPS}
        if isinstance(props, dict)
        else {},
        "resume": resume,
    }
    value = dict(add_notes(value, None, thread=stored_dialect(run.input)[1]))
    run_request = check_run(value, dump(value), digest=digest_of(value))
    return await admit_run(request, run_request, fallback=backend_of(request).agents.default)


async def get_run(request: Request, id: RunId) -> RunShape:
    """Return a run's status, usage and error."""
    return run_row(await find_run(request, id))


async def get_events(
    request: Request,
    id: RunId,
    *,
    after: Annotated[str | None, in_query("The number of your last event.")] = None,
    last_event_id: Annotated[str | None, in_header("The same; takes precedence over `after`.")] = None,
    protocol: Annotated[str | None, in_query("AG-UI version: `1.0`, or an older one.", alias="protocolVersion")] = None,
    join: Annotated[bool, in_query("Begin with the conversation so far, unless you name your last event.")] = False,
) -> Response:
    """Stream a run's events after a number, during the run or later; or join it after the conversation so far."""
    # Parse the number of the last event that the reader has.
    text = last_event_id or after or "0"
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
        raise WireError(where="Last-Event-ID", problem=f"must be the number of an event, is {text[:64]!r}")
    number = min(int(text), 2**31 - 1)
    run = await find_run(request, id)
    if run.status != "ended" and number > run.last_event:
        # A reader with a later number would miss the next events.
        problem = f"is {number}, but the newest event of this run is number {run.last_event}"
        raise WireError(where="Last-Event-ID", problem=problem)
    backend = backend_of(request)
    own_protocol, thread = stored_dialect(run.input)
    protocol = protocol or own_protocol
    if join and not (last_event_id or after):
        return await join_stream(request, run, thread_name=thread, protocol=protocol)
    render = event_renderer(backend, protocol, thread)
    with backend.runs.streams.hold(run.owner) as stack:
        if run.status == "ended" and not await backend.store.events.has_any(run.id):
            return stream_again(run, await ended_events(backend, run), number, render, stack.pop_all())
        return stream(backend.runs.hub, run, number, render, stack.pop_all())


async def cancel_run(request: Request, id: RunId) -> RunShape:
    """Cancel a run; its output stays. Idempotent."""
    return run_row(await end_run(backend_of(request), await find_run(request, id)))


async def end_run(backend: Backend, run: StoredRun) -> StoredRun:
    """Cancel a run for its user. A finished run stays unchanged."""
    start = RunStarted(thread=run.thread, run=run.name)
    finish = RunFinished(thread=run.thread, run=run.name, outcome="cancelled")
    events = [*encode_event(start), *encode_event(finish)]
    cancel = Cancel(reason="cancelled by its user", now=backend.clock(), events=events)
    cancelled_run = await backend.store.runs.cancel(run, cancel)
    backend.runs.cancel(run.id)
    return cancelled_run


async def find_run(request: Request, id: str) -> StoredRun:
    """Return a run of the caller. Raises NotFound for other users' runs."""
    if NUL in id:
        raise NotFound(what="run", id=id)
    return await backend_of(request).store.runs.find(user_of(request).name, id)


def run_row(run: StoredRun) -> RunShape:
    """Return a run as clients see it (P8)."""
    final_status = STATUSES.get(run.outcome or "", "failed")
    return {
        **admitted_row(run),
        "agent": run.agent,
        "status": final_status if run.status == "ended" else run.status,
        "started": time_text(run.started) if run.started else None,
        "ended": time_text(run.ended) if run.ended else None,
        "outcome": run.outcome,
        "error": run.error,
        "usage": load_object(run.usage) if run.usage else None,
        "calls": run.calls,
        "lastEventId": run.last_event,
    }


ERRORS = (404, 409, 413, 422)
post = partial(Route, "POST", tag="runs")
ROUTES = (
    post(RUNS, start_run, status=202, body=RunBody, streams=True, errors=ERRORS),
    Route("GET", f"{RUNS}/{{id}}", get_run, "runs", errors=(404, 422)),
    Route("GET", f"{RUNS}/{{id}}/events", get_events, "runs", streams=True, errors=(404, 422)),
    post(f"{RUNS}/{{id}}/cancel", cancel_run, errors=(404, 422)),
    post(f"{RUNS}/{{id}}/resume", resume_run, status=202, body=ResumeBody, streams=True, errors=ERRORS),
)
