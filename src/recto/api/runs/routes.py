"""What a request may wish of an agent's skills: one that it has, a scenario of it, a voice. Else it is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Annotated

from fastapi import Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from recto.agents.agent import CHAT, Agent
from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.bodies import (
    NUL,
    admitted_row,
    check_after,
    check_tools,
    digest_of,
    kept_of,
    parse_after,
    parse_input,
    protocol_of,
    read_body,
    run_row,
    zone_of,
)
from recto.api.route import Route
from recto.api.runs.admit_files import Attached, attach, signed_of
from recto.api.runs.streams import EventRenderer, event_renderer, stream, stream_again, stream_new, wants_stream
from recto.api.shapes import ACCEPTED, RUN_BODY, RUN_EXAMPLE, RunBody, RunShape, TaskAccepted
from recto.api.signed import signs, urls_of
from recto.conversation.attachment import files_in
from recto.conversation.events import RunFinished, RunStarted, encode_event
from recto.conversation.input.input_rules import RunOptions, run_options
from recto.conversation.input.run_input import RunInput
from recto.conversation.json import load_object
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.replay import EndedRun, RenderContext, snapshot_events
from recto.errors import NotFound, RectoError, Refused, WireError
from recto.skills.skill import CORE
from recto.store.ports import Admission, Cancel, StoredRun

RUNS = "/api/v1/agent/runs"
RunId = Annotated[str, Path(description="The run's id: `taskId`, or the `runId` it was started with.")]


async def start_run(request: Request) -> Response:
    """Start a run: 202 once it is stored, or its events with `Accept: text/event-stream`.

    The same request again answers with the same run. `forwardedProps` may name `agent`, `timezone`, `multitask`
    (`enqueue`, `reject` or `interrupt`), `skill`, `scenario`, `voice_mode` and `datasets`.
    """
    streams = wants_stream(request.headers.get("accept", ""))
    return await admit_run(request, await read_body(request), streams=streams, fallback=backend_of(request).agent)


async def admit_run(request: Request, body: bytes, *, streams: bool, fallback: str) -> Response:
    """Store the run of a RunAgentInput, or refuse it; answer with its events, or with what it goes by.

    `fallback` is the agent that answers where neither the run nor its thread names one.
    """
    backend, owner = backend_of(request), user_of(request).name
    run_input = parse_input(body)
    options = run_options(run_input.props)
    digest, render = digest_of(body), event_renderer(run_input.protocol, signs(backend))
    if any(files_in(run_input.messages)) and (again := await backend.store.again(owner, run_input.run, digest)):
        # It was taken before (P4): its files are not looked for, nor stored, once more.
        return _known(backend, again.run, render, streams=streams)
    try:
        agent = await _check_options(backend, owner, run_input, options, fallback)
        await _check_thread(backend, owner, run_input)
        signed = await signed_of(backend, owner, run_input, agent.file_input)
        check_tools(run_input, backend.tool_names.get(agent.name, ()))
        await backend.schemas.admit(run_input.tools)
    except (WireError, Refused):
        # The same: what was there then may be gone.
        again = await backend.store.again(owner, run_input.run, digest)
        if again is None:
            raise
        return _known(backend, again.run, render, streams=streams)
    attached = await attach(backend, owner, kept_of(body), run_input, agent.file_input, signed=signed)
    admission = replace(_admission(backend, owner, run_input, options, attached), digest=digest, fallback=fallback)
    try:
        if streams:
            return await _stream_run(backend, admission, render)
        return json_answer(admitted_row((await backend.admit(admission)).run), 202)
    except RectoError:
        await attached.drop(backend, owner)
        raise


def _known(backend: Backend, run: StoredRun, render: EventRenderer, *, streams: bool) -> Response:
    if not streams:
        return json_answer(admitted_row(run), 202)
    with _streaming(backend, run.owner) as held:
        return stream(backend.hub, run, 0, render, held.pop_all())


@contextmanager
def _streaming(backend: Backend, owner: str) -> Generator[ExitStack]:
    """What a stream holds while it lasts; raises where there are too many. Whoever makes the stream takes it over."""
    with ExitStack() as held:
        held.enter_context(backend.streams.one_more(owner))
        yield held


async def _check_options(
    backend: Backend, owner: str, run_input: RunInput, options: RunOptions, fallback: str
) -> Agent:
    """The agent that is to answer. Agents, skills and datasets must be there."""
    if options.timezone is not None:
        zone_of(options.timezone, "forwardedProps.timezone")
    if options.agent is not None and options.agent not in backend.agents:
        problem = f"there is no agent {options.agent[:64]!r}; known: {', '.join(backend.agents)}"
        raise WireError(where="forwardedProps.agent", problem=problem)
    await _check_datasets(backend, owner, options)
    name = options.agent
    is_particular = bool(run_input.tools) or any(files_in(run_input.messages)) or has_skill_options(options)
    if name is None and is_particular:
        name = await backend.store.thread_agent(owner, run_input.thread.lower())
    agent = backend.agents.get(name or fallback, CHAT)
    active = await _active_skill(backend, owner, run_input) if needs_active(options) else None
    check_skill_options(agent, options, active)
    return agent


async def _active_skill(backend: Backend, owner: str, run_input: RunInput) -> str | None:
    try:
        return (await backend.store.get_thread(owner, run_input.thread.lower())).skill
    except NotFound:
        return None


async def _check_thread(backend: Backend, owner: str, run_input: RunInput) -> None:
    """Files are looked at, and fetched, only for a thread of one's own, or one that is not there yet (P5)."""
    thread = run_input.thread.lower()
    if any(files_in(run_input.messages)) and thread in await backend.store.known_threads([thread]):
        await backend.store.get_thread(owner, thread)


async def _check_datasets(backend: Backend, owner: str, options: RunOptions) -> None:
    """A dataset that is not there and one that is not for this user are told alike (F10)."""
    named = tuple(id.lower() for id in options.datasets)
    usable = {one.id for one in await backend.store.usable_datasets(owner, named)} if named else ()
    for place, id in enumerate(options.datasets):
        if id.lower() not in usable:
            problem = f"there is no dataset {id[:64]!r} that you may use"
            raise WireError(where=f"forwardedProps.datasets[{place}]", problem=problem)


async def _stream_run(backend: Backend, admission: Admission, render: EventRenderer) -> Response:
    with _streaming(backend, admission.owner) as held:
        listener = held.enter_context(backend.hub.listening(admission.id))
        admitted = await backend.admit(admission)
        if admitted.is_new:
            return stream_new(backend.hub, held.pop_all(), listener, admitted.run, render)
        return stream(backend.hub, admitted.run, 0, render, held.pop_all())


async def get_run(request: Request, id: RunId) -> Response:
    """How a run is doing: its status, what it used, why it failed."""
    return json_answer(run_row(await find_run(request, id)))


async def get_events(
    request: Request,
    id: RunId,
    after: Annotated[str | None, Query(description="The number of the last event you have.")] = None,
    last_event_id: Annotated[str | None, Header(description="The same; it wins.")] = None,
    protocol: Annotated[str | None, Query(alias="protocolVersion", description="`1.0`, or an older one.")] = None,
) -> Response:
    """A run's events from any number on, while it runs or later."""
    number = parse_after(last_event_id or after or "0")
    run = await find_run(request, id)
    check_after(number, run)
    backend = backend_of(request)
    render = event_renderer(protocol or protocol_of(run), signs(backend))
    with _streaming(backend, run.owner) as held:
        if run.status == "ended" and not await backend.store.has_events(run.id):
            return stream_again(run, await _snapshot(backend, run), number, render, held.pop_all())
        return stream(backend.hub, run, number, render, held.pop_all())


async def _snapshot(backend: Backend, run: StoredRun) -> Sequence[bytes]:
    """What is told of a run whose events are kept no longer."""
    known = load_object(run.usage) if run.usage else None
    # Events have no place for a price.
    usage = {name: count for name, count in known.items() if isinstance(count, int)} if known else None
    ended = EndedRun(
        thread=run.thread,
        run=run.name,
        outcome=run.outcome or "",
        events=run.last_event,
        error=run.error,
        usage=usage,
    )
    log, refs = await backend.store.log_of_run(run), await backend.store.file_refs(run.thread)
    context = RenderContext(
        url_of=urls_of(backend, refs),
        refs=refs,
        own_tools=backend.tool_names.get(run.agent, frozenset()),
        locale=agent.locale if (agent := backend.agents.get(run.agent)) else DEFAULT_LOCALE,
    )
    # A long thread takes a while to write out.
    return await asyncio.to_thread(snapshot_events, ended, log, context)


async def cancel_run(request: Request, id: RunId) -> Response:
    """End a run; what it wrote so far is kept. Asking twice, or after its end, changes nothing."""
    backend, run = backend_of(request), await find_run(request, id)
    ended = RunFinished(thread=run.thread, run=run.name, outcome="cancelled")
    events = [*encode_event(RunStarted(thread=run.thread, run=run.name)), *encode_event(ended)]
    cancel = Cancel(reason="cancelled by its user", now=backend.clock(), events=events)
    run = await backend.store.cancel(run, cancel)
    backend.cancel(run.id)
    return json_answer(run_row(run))


async def find_run(request: Request, id: str) -> StoredRun:
    """A run of whoever asks. Somebody else's is not there."""
    if NUL in id:
        raise NotFound(what="run", id=id)
    return await backend_of(request).store.find_run(user_of(request).name, id)


def _admission(backend: Backend, owner: str, run_input: RunInput, options: RunOptions, attached: Attached) -> Admission:
    response_id = backend.new_id()
    return Admission(
        id=backend.new_id(),
        name=run_input.run,
        owner=owner,
        thread=run_input.thread.lower(),
        agent=options.agent,
        multitask=options.multitask,
        bounds=backend.bounds,
        input=attached.body,
        response_id=response_id,
        files=attached.refs(response_id),
        created=backend.clock(),
    )


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


SHOWN = 64


def needs_active(options: RunOptions) -> bool:
    """Whether it matters which skill the thread is in."""
    return options.scenario is not None and options.skill is None


def has_skill_options(options: RunOptions) -> bool:
    """Whether anything is wished that only the agent knows to be there."""
    return options.skill not in (None, CORE) or options.scenario is not None or options.voice_mode is not None


def check_skill_options(agent: Agent, options: RunOptions, active: str | None) -> None:
    """Refuse a skill, a scenario or a voice that the agent does not have. Who has no voices is asked for none.

    A scenario is one of the skill that is asked for, or of the `active` one.
    """
    if options.skill is not None:
        _check_known(options.skill, (*agent.skills, CORE), "skill")
    skill = agent.skills.get(options.skill or active or "")
    if options.scenario is not None and agent.skills:
        _check_known(options.scenario, [one.name for one in skill.scenarios] if skill else (), "scenario")
    if options.voice_mode is not None and agent.voices:
        _check_known(options.voice_mode, agent.voices, "voice_mode")


def _check_known(name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        problem = f"there is no {what} {name[:SHOWN]!r}; known: {', '.join(known) or 'none'}"
        raise WireError(where=f"forwardedProps.{what}", problem=problem)
