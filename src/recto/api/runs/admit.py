"""Admission of a run: options, thread, files and tools are validated, then the run is stored or rejected as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.agent import CHAT, Agent
from recto.agents.spoken_language import choose_agent
from recto.api.backend import Backend, agent_named, backend_of, json_answer, user_of
from recto.api.bodies import SentRun
from recto.api.parameters import zone_of
from recto.api.route import TASK, THREAD, TIME
from recto.api.runs.admit_files import Attached, attach, signed_of
from recto.api.runs.joining import event_renderer
from recto.api.runs.streams import EventRenderer, stream, stream_new
from recto.conversation.attachment import Attachment, files_in
from recto.conversation.history import time_text
from recto.conversation.input.run_input import TRACEPARENT, RunInput, known_traceparent, with_traceparent
from recto.conversation.input.run_options import RunOptions
from recto.conversation.interrupts import interrupts_of
from recto.conversation.json import dump
from recto.conversation.log import View
from recto.conversation.messages import Source, UserMessage, words_of
from recto.errors import NotFound, RectoError, Refused, WireError
from recto.skills.skill import CORE
from recto.store.ports import Admission, AdmissionThread, StoredRun

# Maximum characters of an unknown name in a message.
SHOWN = 64


class TaskAccepted(TypedDict):
    """A stored run."""

    taskId: str
    threadId: str
    runId: str
    created: str


ACCEPTED: TaskAccepted = {"taskId": TASK, "threadId": THREAD, "runId": "run-001", "created": TIME}


async def admit_run(request: Request, sent: SentRun, *, streams: bool, fallback: str) -> Response:
    """Store a run or reject it. Respond with its events or its ids.

    `fallback` is the agent if neither the run nor its thread names one, in the language of the message.
    """
    backend, owner, asked = backend_of(request), user_of(request).name, sent.input
    fallback = in_language(request, asked, fallback)
    render = event_renderer(backend, asked.protocol, asked.sent_thread)
    if _has_files(asked) and (again := await backend.store.again(owner, asked.run, sent.digest)):
        # A repeated request (P4): its files are not checked or stored again.
        return _known(backend, again.run, render, streams=streams)
    try:
        agent, signed = await check_admission(backend, owner, asked, fallback)
    except (WireError, Refused):
        # A repeated request: files or agents may be gone by now.
        again = await backend.store.again(owner, asked.run, sent.digest)
        if again is None:
            raise
        return _known(backend, again.run, render, streams=streams)
    attached = _traced(request, await attach(backend, owner, sent, agent.file_input, signed=signed))
    admission = replace(admission_of(backend, owner, attached), digest=sent.digest, fallback=fallback)
    try:
        if streams:
            return await _stream_run(backend, admission, render)
        return json_answer(admitted_row((await backend.admit(admission)).run), 202)
    except RectoError:
        await attached.drop(backend, owner)
        raise


def in_language(request: Request, asked: RunInput, name: str) -> str:
    """Return the language variant of an agent for a new thread (C4)."""
    words = " ".join(words_of(one) for one in asked.messages if isinstance(one, UserMessage))
    return choose_agent(backend_of(request).agents, name, words, request.headers.get("accept-language", ""))


async def check_admission(
    backend: Backend, owner: str, asked: RunInput, fallback: str
) -> tuple[Agent, Mapping[Source, Attachment]]:
    """Validate a run. Returns its agent and the attachments of its signed urls."""
    _check_state(backend, asked)
    _check_names(backend, asked.options)
    await _check_datasets(backend, owner, asked.options)
    thread = await _thread_of(backend, owner, asked)
    agent = backend.agents.get(asked.options.agent or (thread and thread.agent) or fallback, CHAT)
    _check_skill_options(agent, asked.options, thread.skill if thread else None)
    _check_owner(asked, thread)
    signed = await signed_of(backend, owner, asked, agent.file_input)
    confirmed = backend.confirmed.get(agent.name, {})
    _check_tools(asked, backend.tool_names.get(agent.name, frozenset()) - confirmed.keys())
    await _check_changes(backend, asked, confirmed)
    await backend.schemas.admit(asked.tools)
    return agent, signed


def _traced(request: Request, attached: Attached) -> Attached:
    """Attach the caller's trace context, if spans are recorded, so that another process can continue the trace."""
    sender = known_traceparent(request.headers.get(TRACEPARENT)) if backend_of(request).has_spans else None
    if sender is None:
        return attached
    body, asked = with_traceparent(attached.body, sender), replace(attached.input, traceparent=sender)
    return replace(attached, body=body, input=asked)


def _has_files(asked: RunInput) -> bool:
    return any(files_in(asked.messages))


def _known(backend: Backend, run: StoredRun, render: EventRenderer, *, streams: bool) -> Response:
    if not streams:
        return json_answer(admitted_row(run), 202)
    with backend.streams.hold(run.owner) as held:
        return stream(backend.hub, run, 0, render, held.pop_all())


def _check_state(backend: Backend, asked: RunInput) -> None:
    """Limit the shared state, which the log and events contain as a whole."""
    size = len(dump(asked.state)) if asked.state is not None else 0
    if size > backend.state_bytes:
        problem = f"has {size} bytes; up to {backend.state_bytes} are taken. Keep in it what tools and clients share"
        raise WireError(where="state", problem=problem)


def _check_names(backend: Backend, options: RunOptions) -> None:
    if options.timezone is not None:
        zone_of(options.timezone, "forwardedProps.timezone")
    if options.agent is not None:
        agent_named(backend, options.agent, "forwardedProps.agent")


async def _check_datasets(backend: Backend, owner: str, options: RunOptions) -> None:
    """Reject missing datasets and those of other users with the same error (F10)."""
    named = tuple(id.lower() for id in options.datasets)
    usable = {one.id for one in await backend.store.usable_datasets(owner, named)} if named else ()
    for place, id in enumerate(options.datasets):
        if id.lower() not in usable:
            problem = f"there is no dataset {id[:SHOWN]!r} that you may use"
            raise WireError(where=f"forwardedProps.datasets[{place}]", problem=problem)


async def _thread_of(backend: Backend, owner: str, asked: RunInput) -> AdmissionThread | None:
    """Return the thread if its owner, agent or skill matters for this request; else None."""
    options = asked.options
    of_agent = options.agent is None and (bool(asked.tools) or _has_skill_options(options))
    of_skill = options.scenario is not None and options.skill is None
    if not (of_agent or of_skill or asked.resume or _has_files(asked)):
        return None
    return await backend.store.thread_for_admission(owner, asked.thread.lower())


def _has_skill_options(options: RunOptions) -> bool:
    """Return True if an option depends on the agent."""
    return options.skill not in (None, CORE) or options.scenario is not None or options.voice_mode is not None


def _check_skill_options(agent: Agent, options: RunOptions, active: str | None) -> None:
    """Reject an unknown skill, scenario or voice. An agent without voices ignores them.

    A scenario belongs to the requested skill, or to the `active` one.
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


def _check_owner(asked: RunInput, thread: AdmissionThread | None) -> None:
    """Raise NotFound for files in another user's thread (P5), and for answers to interrupts of a missing thread.

    Files are checked and fetched only in one's own threads or new ones.
    """
    is_missing = not thread.is_own if thread else bool(asked.resume)
    if (_has_files(asked) or asked.resume) and is_missing:
        raise NotFound(what="thread", id=asked.thread.lower())


def _check_tools(found: RunInput, own: Collection[str]) -> None:
    """Reject duplicate tool names, including the agent's own. Tools that need approval are exempt: clients ask by that
    name.
    """
    known: set[str] = set()
    for place, tool in enumerate(found.tools):
        where = f"tools[{place}].name"
        if tool.name in own:
            problem = f"{tool.name!r} is a tool of the agent itself; give yours another name"
            raise WireError(where=where, problem=problem)
        if tool.name in known:
            raise WireError(where=where, problem=f"{tool.name!r} is there twice; give each its own name")
        known.add(tool.name)


async def _check_changes(backend: Backend, asked: RunInput, schemas: Mapping[str, str]) -> None:
    """Reject changed arguments that do not fit the schema of the tool. The whole request is rejected."""
    changed = {place: item for place, item in enumerate(asked.resume) if item.decision.arguments is not None}
    if not changed:
        return
    known = {one.id: one for one in interrupts_of(View(entries=tuple(await backend.store.turn(asked.thread.lower()))))}
    for place, item in changed.items():
        found = known.get(item.interrupt)
        schema = schemas.get(found.call.name) if found else None
        # The store checks whether the call still waits.
        if schema is not None and item.decision.arguments is not None:
            [advice] = await backend.schemas.check([(item.decision.arguments, schema)])
            if advice is not None:
                # The rest of the text addresses models.
                problem = advice.partition("Call the tool again")[0].strip()
                raise WireError(where=f"resume[{place}].payload.arguments", problem=f"cannot be used. {problem}")


def admission_of(backend: Backend, owner: str, attached: Attached) -> Admission:
    """Return the admission of a request, with new ids and the current time."""
    response_id, asked = backend.new_id(), attached.input
    return Admission(
        id=backend.new_id(),
        name=asked.run,
        owner=owner,
        thread=asked.thread.lower(),
        agent=asked.options.agent,
        multitask=asked.options.multitask,
        bounds=backend.bounds,
        input=attached.body,
        parsed=asked,
        response_id=response_id,
        files=attached.refs(response_id),
        created=backend.clock(),
    )


async def _stream_run(backend: Backend, admission: Admission, render: EventRenderer) -> Response:
    with backend.streams.hold(admission.owner) as held:
        listener = held.enter_context(backend.hub.open_listener(admission.id))
        admitted = await backend.admit(admission)
        if admitted.is_new:
            return stream_new(backend.hub, held.pop_all(), listener, admitted.run, render)
        return stream(backend.hub, admitted.run, 0, render, held.pop_all())


def admitted_row(run: StoredRun) -> TaskAccepted:
    """Return the response to an admitted run (P1)."""
    return {"taskId": run.id, "threadId": run.thread, "runId": run.name, "created": time_text(run.created)}
