"""Admission of a run: its options, files and tools are checked, and it is stored; or all of it is refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.agent import CHAT, Agent
from recto.api.backend import Backend, agent_named, backend_of, json_answer, user_of
from recto.api.bodies import digest_of, kept_of, parse_input
from recto.api.parameters import zone_of
from recto.api.route import TASK, THREAD, TIME
from recto.api.runs.admit_files import Attached, attach, signed_of
from recto.api.runs.streams import EventRenderer, event_renderer, stream, stream_new
from recto.api.signed import signs
from recto.conversation.attachment import files_in
from recto.conversation.history import time_text
from recto.conversation.input.input_rules import RunOptions, run_options
from recto.conversation.input.run_input import RunInput
from recto.errors import NotFound, RectoError, Refused, WireError
from recto.skills.skill import CORE
from recto.store.ports import Admission, StoredRun

# How much of a name that nobody knows is shown.
SHOWN = 64


class TaskAccepted(TypedDict):
    """A run that is stored and will be worked on."""

    taskId: str
    threadId: str
    runId: str
    created: str


ACCEPTED: TaskAccepted = {"taskId": TASK, "threadId": THREAD, "runId": "run-001", "created": TIME}


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
        _check_tools(run_input, backend.tool_names.get(agent.name, ()))
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
    with backend.streams.hold(run.owner) as held:
        return stream(backend.hub, run, 0, render, held.pop_all())


async def _check_options(
    backend: Backend, owner: str, run_input: RunInput, options: RunOptions, fallback: str
) -> Agent:
    """The agent that is to answer. Agents, skills and datasets must be there."""
    if options.timezone is not None:
        zone_of(options.timezone, "forwardedProps.timezone")
    if options.agent is not None:
        agent_named(backend, options.agent, "forwardedProps.agent")
    await _check_datasets(backend, owner, options)
    name = options.agent
    is_particular = bool(run_input.tools) or any(files_in(run_input.messages)) or _has_skill_options(options)
    if name is None and is_particular:
        name = await backend.store.thread_agent(owner, run_input.thread.lower())
    agent = backend.agents.get(name or fallback, CHAT)
    active = await _active_skill(backend, owner, run_input) if _needs_active(options) else None
    _check_skill_options(agent, options, active)
    return agent


async def _check_datasets(backend: Backend, owner: str, options: RunOptions) -> None:
    """A dataset that is not there and one that is not for this user are told alike (F10)."""
    named = tuple(id.lower() for id in options.datasets)
    usable = {one.id for one in await backend.store.usable_datasets(owner, named)} if named else ()
    for place, id in enumerate(options.datasets):
        if id.lower() not in usable:
            problem = f"there is no dataset {id[:SHOWN]!r} that you may use"
            raise WireError(where=f"forwardedProps.datasets[{place}]", problem=problem)


def _needs_active(options: RunOptions) -> bool:
    """Whether it matters which skill the thread is in."""
    return options.scenario is not None and options.skill is None


def _has_skill_options(options: RunOptions) -> bool:
    """Whether anything is asked for that only the agent knows to be there."""
    return options.skill not in (None, CORE) or options.scenario is not None or options.voice_mode is not None


def _check_skill_options(agent: Agent, options: RunOptions, active: str | None) -> None:
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


def _check_tools(found: RunInput, own: Collection[str]) -> None:
    """Refuse two tools of one name, be it the agent's own: a call of it would mean either."""
    known: set[str] = set()
    for place, tool in enumerate(found.tools):
        where = f"tools[{place}].name"
        if tool.name in own:
            problem = f"{tool.name!r} is a tool of the agent itself; give yours another name"
            raise WireError(where=where, problem=problem)
        if tool.name in known:
            raise WireError(where=where, problem=f"{tool.name!r} is there twice; give each its own name")
        known.add(tool.name)


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


async def _stream_run(backend: Backend, admission: Admission, render: EventRenderer) -> Response:
    with backend.streams.hold(admission.owner) as held:
        listener = held.enter_context(backend.hub.listening(admission.id))
        admitted = await backend.admit(admission)
        if admitted.is_new:
            return stream_new(backend.hub, held.pop_all(), listener, admitted.run, render)
        return stream(backend.hub, admitted.run, 0, render, held.pop_all())


def admitted_row(run: StoredRun) -> TaskAccepted:
    """The answer to an admitted run (P1)."""
    return {"taskId": run.id, "threadId": run.thread, "runId": run.name, "created": time_text(run.created)}
