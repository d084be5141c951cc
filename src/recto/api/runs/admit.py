"""Admission of a run: the server checks options, thread, files and tools, then stores or rejects the run as a whole."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Annotated

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.agent import CHAT, Agent
from recto.agents.spoken_language import choose_agent
from recto.api.backend import Backend, backend_of, user_of
from recto.api.bodies import RunRequest
from recto.api.route import in_path, zone_of
from recto.api.runs.admit_files import StorableRequest, find_signed_files, store_files
from recto.api.runs.stream_join import event_renderer
from recto.api.runs.streams import EventStream, stream, wants_stream
from recto.conversation.history import time_text
from recto.conversation.input.input_rules import UUID
from recto.conversation.input.run_input import TRACEPARENT, RunInput, RunOptions, add_traceparent, read_traceparent
from recto.conversation.interrupts import interrupts_of
from recto.conversation.json import dump
from recto.conversation.log import View
from recto.conversation.message_files import Attachment, files_in
from recto.conversation.messages import Source, UserMessage, words_of
from recto.errors import InvalidRequest, NotFound, RectoError, WireError
from recto.skills.skill import CORE
from recto.store.ports import Admission, AdmissionThread, StoredRun
from recto.store.runs.admission import token_limit_error

if TYPE_CHECKING:
    from recto.store.store import Store

THREADS = "/api/v1/agent/threads"
THREAD_PATH = f"{THREADS}/{{id}}"
ThreadId = Annotated[str, in_path("The thread's id, or an AG-UI client's name of it.")]
# Namespace of thread ids. It must never change, because a name must always map to the same thread.
NAMES = uuid.UUID("5a0f6c1e-6b1d-4c53-9d1f-3f2f7f6a8e01")
MAX_NAME = 512
# Maximum characters of an unknown name in an error message.
NAME_CHARACTERS = 64


class TaskAccepted(TypedDict):
    """A stored run."""

    taskId: str
    threadId: str
    runId: str
    created: str


async def admit_run(request: Request, run_request: RunRequest, *, fallback: str) -> TaskAccepted | Response:
    """Store a run or reject it. Respond with its ids, or with its events if the client prefers a stream.

    `fallback` names the agent if neither the run nor its thread does. The server uses the agent's variant in the
    language of the message.
    """
    if wants_stream(request.headers.get("accept", "")):
        return await stream_run(request, run_request, fallback=fallback)
    backend, owner = backend_of(request), user_of(request).name
    prepared = await _prepare(request, run_request, fallback)
    if isinstance(prepared, StoredRun):
        return admitted_row(prepared)
    admission, storable = prepared
    try:
        return admitted_row((await backend.runs.admit(admission)).run)
    except RectoError:
        await storable.drop(backend, owner)
        raise


async def stream_run(request: Request, run_request: RunRequest, *, fallback: str) -> Response:
    """Store a run or reject it. Respond with its events."""
    backend, owner, run_input = backend_of(request), user_of(request).name, run_request.input
    render = event_renderer(backend, run_input.protocol, run_input.sent_thread)
    prepared = await _prepare(request, run_request, fallback)
    if isinstance(prepared, StoredRun):
        with backend.runs.streams.hold(prepared.owner) as stack:
            return stream(backend.runs.hub, prepared, 0, render, stack.pop_all())
    admission, storable = prepared
    try:
        with backend.runs.streams.hold(owner) as stack:
            listener = stack.enter_context(backend.runs.hub.open_listener(admission.id))
            result = await backend.runs.admit(admission)
            if result.is_new:
                events = backend.runs.hub.follow_listener(listener, 0, is_new=True)
                return EventStream(events, render, result.run, stack.pop_all())
            return stream(backend.runs.hub, result.run, 0, render, stack.pop_all())
    except RectoError:
        await storable.drop(backend, owner)
        raise


async def _prepare(
    request: Request, run_request: RunRequest, fallback: str
) -> tuple[Admission, StorableRequest] | StoredRun:
    """Validate a run and store its files. Returns the stored run if the request is a repeated one (P4).

    The caller deletes the new files if the store rejects the run.
    """
    backend, owner, run_input = backend_of(request), user_of(request).name, run_request.input
    fallback = choose_localized_agent(request, run_input, fallback)
    find_repeated = partial(backend.store.runs.find_repeated, owner, run_input.run, run_request.digest)
    # Do not check or store the files of a repeated request again.
    if _has_files(run_input) and (repeated := await find_repeated()):
        return repeated.run
    try:
        agent, signed_files = await check_admission(backend, owner, run_input, fallback)
    except (WireError, InvalidRequest):
        # Files or agents of a repeated request may be deleted by now.
        if repeated := await find_repeated():
            return repeated.run
        raise
    storable = await store_files(backend, owner, run_request, agent.file_input, signed_files=signed_files)
    # The caller's trace context lets another process continue the trace.
    sender = read_traceparent(request.headers.get(TRACEPARENT)) if backend.runs.has_spans else None
    if sender is not None:
        traced_input = replace(storable.input, traceparent=sender)
        storable = replace(storable, body=add_traceparent(storable.body, sender), input=traced_input)
    admission = make_admission(backend, owner, storable)
    return replace(admission, digest=run_request.digest, fallback=fallback), storable


def choose_localized_agent(request: Request, run_input: RunInput, name: str) -> str:
    """Return the language variant of an agent for a new thread (C4)."""
    words = " ".join(words_of(one) for one in run_input.messages if isinstance(one, UserMessage))
    return choose_agent(backend_of(request).agents.by_name, name, words, request.headers.get("accept-language", ""))


async def check_admission(
    backend: Backend, owner: str, run_input: RunInput, fallback: str
) -> tuple[Agent, Mapping[Source, Attachment]]:
    """Validate a run. Returns its agent and the attachments of its signed urls."""
    options = run_input.options
    _check_state(run_input, backend.runs.state_bytes)
    if options.timezone is not None:
        zone_of(options.timezone, "forwardedProps.timezone")
    if options.agent is not None:
        backend.agents.require(options.agent, "forwardedProps.agent")
    await _check_datasets(backend.store, owner, options)
    thread = await _find_thread(backend.store, owner, run_input)
    agent = backend.agents.by_name.get(options.agent or (thread and thread.agent) or fallback, CHAT)
    _check_skill_options(agent, options, thread.skill if thread else None)
    # Raise NotFound for files in another user's thread (P5), and for answers to interrupts of a missing thread. Files
    # are checked and fetched only for new threads and the caller's own.
    is_missing = not thread.is_own if thread else bool(run_input.resume)
    if (_has_files(run_input) or run_input.resume) and is_missing:
        raise NotFound(what="thread", id=run_input.thread.lower())
    signed_files = await find_signed_files(backend.files, owner, run_input, agent.file_input)
    tools = backend.agents.tools_of(agent.name)
    schemas = tools.approval_schemas()
    # Reject duplicate tool names, including the agent's own. Tools that need approval are exempt, because a client may
    # declare a tool of the same name to show the question.
    own_names = tools.own_names() - schemas.keys()
    names: set[str] = set()
    for place, tool in enumerate(run_input.tools):
        where = f"tools[{place}].name"
        if tool.name in own_names:
            raise WireError(where=where, problem=f"{tool.name!r} is a tool of the agent. Give yours another name")
        if tool.name in names:
            raise WireError(where=where, problem=f"{tool.name!r} occurs twice. Give each tool its own name")
        names.add(tool.name)
    await _check_changes(backend, run_input, schemas)
    await backend.runs.schemas.admit(run_input.tools)
    return agent, signed_files


def _has_files(run_input: RunInput) -> bool:
    return any(files_in(run_input.messages))


def _check_state(run_input: RunInput, limit: int) -> None:
    """Reject a shared state above the size limit, because the log and events contain all of it."""
    size = len(dump(run_input.state)) if run_input.state is not None else 0
    if size > limit:
        problem = f"has {size} bytes; the limit is {limit}. Keep only data in it that tools and clients share"
        raise WireError(where="state", problem=problem)


async def _check_datasets(store: Store, owner: str, options: RunOptions) -> None:
    """Reject missing datasets and those of other users with the same error (F10)."""
    ids = tuple(id.lower() for id in options.datasets)
    usable = {one.id for one in await store.datasets.find_usable(owner, ids)} if ids else ()
    for place, id in enumerate(options.datasets):
        if id.lower() not in usable:
            problem = f"there is no dataset {id[:NAME_CHARACTERS]!r} that you may use"
            raise WireError(where=f"forwardedProps.datasets[{place}]", problem=problem)


async def _find_thread(store: Store, owner: str, run_input: RunInput) -> AdmissionThread | None:
    """Return the thread if its owner, agent or skill matters for this request; else None."""
    options = run_input.options
    # These options depend on the agent.
    has_skill_options = (
        options.skill not in (None, CORE) or options.scenario is not None or options.voice_mode is not None
    )
    needs_agent = options.agent is None and (bool(run_input.tools) or has_skill_options)
    needs_skill = options.scenario is not None and options.skill is None
    if not (needs_agent or needs_skill or run_input.resume or _has_files(run_input)):
        return None
    return await store.threads.get_for_admission(owner, run_input.thread.lower())


def _check_skill_options(agent: Agent, options: RunOptions, active: str | None) -> None:
    """Reject an unknown skill, scenario or voice. An agent without voices ignores them.

    A scenario belongs to the requested skill, or to the `active` one.
    """
    if options.skill is not None:
        _check_option(options.skill, (*agent.skills, CORE), "skill")
    skill = agent.skills.get(options.skill or active or "")
    if options.scenario is not None and agent.skills:
        _check_option(options.scenario, [one.name for one in skill.scenarios] if skill else (), "scenario")
    if options.voice_mode is not None and agent.voices:
        _check_option(options.voice_mode, agent.voices, "voice_mode")


def _check_option(name: str, values: Collection[str], option: str) -> None:
    if name not in values:
        problem = f"there is no {option} {name[:NAME_CHARACTERS]!r}; known: {', '.join(values) or 'none'}"
        raise WireError(where=f"forwardedProps.{option}", problem=problem)


async def _check_changes(backend: Backend, run_input: RunInput, schemas: Mapping[str, str]) -> None:
    """Reject the request if changed arguments do not fit the schema of their tool."""
    changes = {place: item for place, item in enumerate(run_input.resume) if item.decision.arguments is not None}
    if not changes:
        return
    turn = View(entries=tuple(await backend.store.log.read_turn(run_input.thread.lower())))
    interrupts = {one.id: one for one in interrupts_of(turn)}
    for place, item in changes.items():
        interrupt = interrupts.get(item.interrupt)
        schema = schemas.get(interrupt.call.name) if interrupt else None
        # The store checks whether the call still waits.
        if schema is not None and item.decision.arguments is not None:
            [advice] = await backend.runs.schemas.check([(item.decision.arguments, schema)])
            if advice is not None:
                # Drop the rest of the text, which addresses models.
                problem = advice.partition("Call the tool again")[0].strip()
                raise WireError(where=f"resume[{place}].payload.arguments", problem=f"cannot be used. {problem}")


def make_admission(backend: Backend, owner: str, storable: StorableRequest) -> Admission:
    """Return the admission of a request, with new ids and the current time."""
    response_id, run_input = backend.new_id(), storable.input
    return Admission(
        id=backend.new_id(),
        name=run_input.run,
        owner=owner,
        thread=run_input.thread.lower(),
        agent=run_input.options.agent,
        multitask=run_input.options.multitask,
        bounds=backend.runs.bounds,
        input=storable.body,
        parsed=run_input,
        response_id=response_id,
        files=storable.refs(response_id),
        created=backend.clock(),
    )


def admitted_row(run: StoredRun) -> TaskAccepted:
    """Return the response to an admitted run (P1)."""
    return {"taskId": run.id, "threadId": run.thread, "runId": run.name, "created": time_text(run.created)}


async def check_daily_tokens(backend: Backend, owner: str) -> None:
    """Raise LimitReached if a user has reached the daily token limit."""
    limit, now = backend.runs.bounds.user_tokens, backend.clock()
    if not limit:
        return
    day = await backend.store.users.read_spending(owner, now.astimezone(UTC).date())
    if (tokens := day.input + day.output) >= limit:
        raise token_limit_error(tokens, limit, now)


def thread_of(owner: str, name: str) -> str:
    """Return the thread id for a user's thread name. The same name gives each user a different thread."""
    if UUID.fullmatch(name):
        return name.lower()
    # User names contain no line break, so this combination is unambiguous.
    return str(uuid.uuid5(NAMES, f"{owner}\n{name}"))


def check_name(name: str) -> None:
    """Reject an invalid thread name."""
    if not 0 < len(name) <= MAX_NAME:
        raise WireError(where="threadId", problem=f"must have 1 to {MAX_NAME} characters, has {len(name):,}")


async def own_thread(request: Request, name: str) -> str:
    """Return the id of the caller's thread. Raises NotFound with the requested name."""
    owner = user_of(request).name
    thread = thread_of(owner, name)
    if thread != name.lower() and not await backend_of(request).store.threads.get_for_admission(owner, thread):
        raise NotFound(what="thread", id=name)
    return thread
