"""Admission of a run, top to bottom: options, thread, files and tools are checked; it is stored, or refused whole."""

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
from recto.store.ports import Admission, FoundThread, StoredRun

# How much of a name that nobody knows is shown.
SHOWN = 64


class TaskAccepted(TypedDict):
    """A run that is stored and will be worked on."""

    taskId: str
    threadId: str
    runId: str
    created: str


ACCEPTED: TaskAccepted = {"taskId": TASK, "threadId": THREAD, "runId": "run-001", "created": TIME}


async def admit_run(request: Request, sent: SentRun, *, streams: bool, fallback: str) -> Response:
    """Store the run that was sent, or refuse it; answer with its events, or with what it goes by.

    `fallback` is the agent that answers where neither the run nor its thread names one, in the language asked in.
    """
    backend, owner, asked = backend_of(request), user_of(request).name, sent.input
    fallback = in_language(request, asked, fallback)
    render = event_renderer(backend, asked.protocol, asked.sent_thread)
    if _has_files(asked) and (again := await backend.store.again(owner, asked.run, sent.digest)):
        # It was taken before (P4): its files are not looked for, nor stored, once more.
        return _known(backend, again.run, render, streams=streams)
    try:
        agent, signed = await check_admission(backend, owner, asked, fallback)
    except (WireError, Refused):
        # The same: what was there then may be gone.
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
    """The agent of a name as it is for a new thread, where it is there in several languages (C4)."""
    words = " ".join(words_of(one) for one in asked.messages if isinstance(one, UserMessage))
    return choose_agent(backend_of(request).agents, name, words, request.headers.get("accept-language", ""))


async def check_admission(
    backend: Backend, owner: str, asked: RunInput, fallback: str
) -> tuple[Agent, Mapping[Source, Attachment]]:
    """Refuse what asks for something that is not there. Returns who would answer, and the files that were signed."""
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
    """The request with the span of whoever sent it, where spans are recorded: the run may be another process's."""
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
    """The state that is shared with a thread stands in its log and in events as a whole."""
    size = len(dump(asked.state)) if asked.state is not None else 0
    if size > backend.state_bytes:
        problem = f"has {size} bytes; up to {backend.state_bytes} are taken. Keep in it what tools and clients share"
        raise WireError(where="state", problem=problem)


def _check_names(backend: Backend, options: RunOptions) -> None:
    """The time zone and the agent that are named must be there."""
    if options.timezone is not None:
        zone_of(options.timezone, "forwardedProps.timezone")
    if options.agent is not None:
        agent_named(backend, options.agent, "forwardedProps.agent")


async def _check_datasets(backend: Backend, owner: str, options: RunOptions) -> None:
    """A dataset that is not there and one that is not for this user are told alike (F10)."""
    named = tuple(id.lower() for id in options.datasets)
    usable = {one.id for one in await backend.store.usable_datasets(owner, named)} if named else ()
    for place, id in enumerate(options.datasets):
        if id.lower() not in usable:
            problem = f"there is no dataset {id[:SHOWN]!r} that you may use"
            raise WireError(where=f"forwardedProps.datasets[{place}]", problem=problem)


async def _thread_of(backend: Backend, owner: str, asked: RunInput) -> FoundThread | None:
    """The thread, looked up once, if it matters here whose it is, who answers in it or in which skill; else None."""
    options = asked.options
    of_agent = options.agent is None and (bool(asked.tools) or _has_skill_options(options))
    of_skill = options.scenario is not None and options.skill is None
    if not (of_agent or of_skill or asked.resume or _has_files(asked)):
        return None
    return await backend.store.thread_for_admission(owner, asked.thread.lower())


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


def _check_owner(asked: RunInput, thread: FoundThread | None) -> None:
    """Files are looked at, and fetched, only for a thread of one's own, or one that is not there yet (P5).

    What waits for an answer is in a thread that is there.
    """
    is_missing = not thread.is_own if thread else bool(asked.resume)
    if (_has_files(asked) or asked.resume) and is_missing:
        raise NotFound(what="thread", id=asked.thread.lower())


def _check_tools(found: RunInput, own: Collection[str]) -> None:
    """Refuse two tools of one name, be it the agent's own: a call of it would mean either.

    But for those a person has to agree to: by that name, clients ask them.
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
    """Refuse arguments that a person gives a call and its tool cannot take: nothing of the request counts then."""
    changed = {place: item for place, item in enumerate(asked.resume) if item.decision.arguments is not None}
    if not changed:
        return
    known = {one.id: one for one in interrupts_of(View(entries=tuple(await backend.store.turn(asked.thread.lower()))))}
    for place, item in changed.items():
        found = known.get(item.interrupt)
        schema = schemas.get(found.call.name) if found else None
        # Whether it waits at all is asked when the run is stored.
        if schema is not None and item.decision.arguments is not None:
            [advice] = await backend.schemas.check([(item.decision.arguments, schema)])
            if advice is not None:
                # What follows is for models: a person changes what they sent.
                problem = advice.partition("Call the tool again")[0].strip()
                raise WireError(where=f"resume[{place}].payload.arguments", problem=f"cannot be used. {problem}")


def admission_of(backend: Backend, owner: str, attached: Attached) -> Admission:
    """A request as a run to be admitted now, with the ids it will go by."""
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
        listener = held.enter_context(backend.hub.listening(admission.id))
        admitted = await backend.admit(admission)
        if admitted.is_new:
            return stream_new(backend.hub, held.pop_all(), listener, admitted.run, render)
        return stream(backend.hub, admitted.run, 0, render, held.pop_all())


def admitted_row(run: StoredRun) -> TaskAccepted:
    """The answer to an admitted run (P1)."""
    return {"taskId": run.id, "threadId": run.thread, "runId": run.name, "created": time_text(run.created)}
