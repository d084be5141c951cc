"""Routes of runs: start, status, events, cancel. Runs of other users do not exist here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.bodies import NUL, parse_run, read_body
from recto.api.parameters import in_header, in_path, in_query
from recto.api.route import THREAD, TIME, Route
from recto.api.runs.admit import ACCEPTED, TaskAccepted, admit_run, admitted_row
from recto.api.runs.joining import ended_events, event_renderer, join_stream
from recto.api.runs.streams import stream, stream_again, wants_stream
from recto.conversation.events import RunFinished, RunStarted, encode_event
from recto.conversation.history import time_text
from recto.conversation.input.run_input import stored_dialect
from recto.conversation.json import Json, load_object
from recto.errors import NotFound, WireError
from recto.store.ports import Cancel, StoredRun

RUNS = "/api/v1/agent/runs"
# Event numbers are short; Python rejects numbers of thousands of digits.
MAX_DIGITS = 18
RunId = Annotated[str, in_path("The run's id: `taskId`, or the `runId` it was started with.")]
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
RUN_BODY: Json = {
    "threadId": THREAD,
    "runId": "run-001",
    "state": {},
    "messages": [{"id": "msg-001", "role": "user", "content": "What is 12*7?"}],
    "tools": [],
    "context": [],
    "forwardedProps": {"agent": "chat"},
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
    arguments: dict[str, object] | None = Field(default=None, description="In the place of the call's own.")


class ResumeShape(BaseModel):
    """The answer to an interrupt. `cancelled` denies the call."""

    interrupt_id: str = Field(alias="interruptId")
    status: Literal["resolved", "cancelled"]
    payload: ResumePayload | None = Field(default=None, description="Needed where it is `resolved`.")


class RunBody(BaseModel):
    """AG-UI's RunAgentInput. Unknown fields are ignored; snake_case is accepted.

    With `resume`, which answers interrupts of the thread, `messages` may be empty.
    """

    thread_id: str = Field(alias="threadId", json_schema_extra={"format": "uuid"})
    run_id: str = Field(alias="runId", min_length=1, max_length=128)
    parent_run_id: str | None = Field(default=None, alias="parentRunId")
    state: object = None
    messages: list[MessageShape] = Field(max_length=200)
    tools: list[ToolShape] | None = []
    context: list[ContextShape] | None = []
    forwarded_props: dict[str, object] | None = Field(default=None, alias="forwardedProps")
    resume: list[ResumeShape] | None = None


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


RUN_EXAMPLE: RunShape = {
    **ACCEPTED,
    "agent": "chat",
    "status": "finished",
    "started": TIME,
    "ended": TIME,
    "outcome": "done",
    "error": None,
    "usage": {"inputTokens": 321, "outputTokens": 12, "totalTokens": 333},
    "calls": 1,
    "lastEventId": 7,
}


async def start_run(request: Request) -> Response:
    """Start a run: 202 once it is stored, or its events with `Accept: text/event-stream`.

    A repeated request returns the same run. `forwardedProps` may name `agent`, `timezone`, `multitask` (`enqueue`,
    `reject` or `interrupt`), `skill`, `scenario`, `voice_mode` and `datasets`.
    """
    streams = wants_stream(request.headers.get("accept", ""))
    sent = parse_run(await read_body(request))
    return await admit_run(request, sent, streams=streams, fallback=backend_of(request).agent)


async def get_run(request: Request, id: RunId) -> Response:
    """Return a run's status, usage and error."""
    return json_answer(run_row(await find_run(request, id)))


async def get_events(
    request: Request,
    id: RunId,
    *,
    after: Annotated[str | None, in_query("The number of the last event you have.")] = None,
    last_event_id: Annotated[str | None, in_header("The same; it wins.")] = None,
    protocol: Annotated[str | None, in_query("`1.0`, or an older one.", alias="protocolVersion")] = None,
    join: Annotated[bool, in_query("Begin with the conversation so far, unless you have an event's number.")] = False,
) -> Response:
    """Stream a run's events after a number, during the run or later; or join it after the conversation so far."""
    number = _parse_after(last_event_id or after or "0")
    run = await find_run(request, id)
    _check_after(number, run)
    backend = backend_of(request)
    own_protocol, thread = stored_dialect(run.input)
    spoken = protocol or own_protocol
    if join and not (last_event_id or after):
        return await join_stream(request, run, thread_name=thread, protocol=spoken)
    render = event_renderer(backend, spoken, thread)
    with backend.streams.hold(run.owner) as held:
        if run.status == "ended" and not await backend.store.has_events(run.id):
            return stream_again(run, await ended_events(backend, run), number, render, held.pop_all())
        return stream(backend.hub, run, number, render, held.pop_all())


def _parse_after(text: str) -> int:
    """Parse the number of the last event a reader has."""
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
        raise WireError(where="Last-Event-ID", problem=f"must be the number of an event, is {text[:64]!r}")
    return min(int(text), 2**31 - 1)


def _check_after(after: int, run: StoredRun) -> None:
    """Reject a number that an active run has not reached, because its reader would miss the next events."""
    if run.status != "ended" and after > run.last_event:
        problem = f"is {after}, but the newest event of this run is number {run.last_event}"
        raise WireError(where="Last-Event-ID", problem=problem)


async def cancel_run(request: Request, id: RunId) -> Response:
    """Cancel a run; its output stays. Idempotent."""
    return json_answer(run_row(await end_run(backend_of(request), await find_run(request, id))))


async def end_run(backend: Backend, run: StoredRun) -> StoredRun:
    """Cancel a run for its user. A finished run stays unchanged."""
    ended = RunFinished(thread=run.thread, run=run.name, outcome="cancelled")
    events = [*encode_event(RunStarted(thread=run.thread, run=run.name)), *encode_event(ended)]
    cancel = Cancel(reason="cancelled by its user", now=backend.clock(), events=events)
    ended_run = await backend.store.cancel(run, cancel)
    backend.cancel(run.id)
    return ended_run


async def find_run(request: Request, id: str) -> StoredRun:
    """Return a run of the caller. Raises NotFound for other users' runs."""
    if NUL in id:
        raise NotFound(what="run", id=id)
    return await backend_of(request).store.find_run(user_of(request).name, id)


def run_row(run: StoredRun) -> RunShape:
    """Return a run as clients see it (P8)."""
    ended = STATUSES.get(run.outcome or "", "failed")
    return {
        **admitted_row(run),
        "agent": run.agent,
        "status": ended if run.status == "ended" else run.status,
        "started": time_text(run.started) if run.started else None,
        "ended": time_text(run.ended) if run.ended else None,
        "outcome": run.outcome,
        "error": run.error,
        "usage": load_object(run.usage) if run.usage else None,
        "calls": run.calls,
        "lastEventId": run.last_event,
    }


ROUTES = (
    Route(
        method="POST",
        path=RUNS,
        handler=start_run,
        tag="runs",
        status=202,
        body=RunBody,
        answer=TaskAccepted,
        streams=True,
        refusals=(404, 409, 413, 422),
        examples={"body": RUN_BODY, "answer": ACCEPTED},
    ),
    Route(
        method="GET",
        path=f"{RUNS}/{{id}}",
        handler=get_run,
        tag="runs",
        answer=RunShape,
        refusals=(404, 422),
        examples={"answer": RUN_EXAMPLE},
    ),
    Route(
        method="GET",
        path=f"{RUNS}/{{id}}/events",
        handler=get_events,
        tag="runs",
        streams=True,
        refusals=(404, 422),
    ),
    Route(
        method="POST",
        path=f"{RUNS}/{{id}}/cancel",
        handler=cancel_run,
        tag="runs",
        answer=RunShape,
        refusals=(404, 422),
        examples={"answer": RUN_EXAMPLE},
    ),
)
