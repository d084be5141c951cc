"""Loading a claimed run: its log, its input on the way into it, its files. Nothing is written before the first step.

A client may answer in the place of a tool: the tool acts on that answer, and its result is what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from recto.agents.agent import CHAT, Agent
from recto.conversation.attachment import from_stored
from recto.conversation.events import CallAnswered, Event, RunStarted, discard_lost
from recto.conversation.input.input_rules import run_options
from recto.conversation.input.run_input import RunInput, decode_input
from recto.conversation.input.take_input import EXPIRED, AdmittedRun, pending_calls, take_input
from recto.conversation.json import load, load_object
from recto.conversation.log import Entry, SkillChanged, View, view
from recto.conversation.messages import ToolCall, ToolMessage, UserMessage, texts_of
from recto.conversation.ui.compile_ui import ui_events
from recto.engine.ports import Signal
from recto.store.ports import RunChange, StoredRun
from recto.tools.ports import ToolResult, report_nothing
from recto.tools.registry import Registry
from recto.worker.account import account_of
from recto.worker.context.thread_files import FileServices, ThreadFiles, has_files, load_thread_files
from recto.worker.recorder import Recorder
from recto.worker.run_state import RunState, is_done_in_time
from recto.worker.runtime import Runtime
from recto.worker.tools.tool_context import act

TAKEN_OVER = "The server stopped while this was being said; it is said again."
PAGE = 1_000
# What events name messages and calls by.
IDS = ("messageId", "parentMessageId", "toolCallId")
# What of `forwardedProps` belongs to a turn, not to each of its runs.
OF_TURN = ("timezone", "datasets", "voice_mode")


async def load_run(runtime: Runtime, run: StoredRun, signal: Signal, recorder: Recorder) -> RunState:
    """The state of a run, with its input ready to enter the log with the first write, once."""
    runtime.reached("claimed")
    # An agent that is gone answers no more, but what it was asked is kept.
    agent = _for_tier(runtime.agents.get(run.agent) or Agent(name=run.agent, prompt=CHAT.prompt), run.tier)
    model = runtime.model_of(agent)
    cached = await runtime.log_cache.take(run.thread, run.last_seq, run.thread_created)
    state = RunState(
        runtime=runtime,
        run=run,
        input=_input_of(run),
        agent=agent,
        model=model,
        tools=runtime.tools.get(agent.name, Registry()),
        signal=signal,
        recorder=recorder,
        log=cached.entries,
        failures=run.failures,
        too_long=run.too_long,
        can_compact=run.can_compact,
        calls=run.calls,
        account=account_of(run.usage),
        # Models count differently: what one said of a page says nothing of another's.
        last=cached.last if cached.model == model.name else None,
        problem=run.error,
    )
    await _hold_input(state)
    await _gather(state)
    runtime.reached("entered")
    return state


def _for_tier(agent: Agent, tier: str) -> Agent:
    return replace(agent, limits=agent.tiers[tier]) if tier in agent.tiers else agent


def _input_of(run: StoredRun) -> RunInput:
    found = decode_input(load(run.input))
    return replace(found, messages=from_stored(found.messages))


async def _hold_input(state: RunState) -> None:
    """Have what the client sent ready to enter the log, once; and what readers have to know before."""
    run = state.run
    started = RunStarted(thread=run.thread, run=run.name, parent=state.input.parent)
    events = await _take_over(state) if run.last_event else []
    # Progress that an earlier worker reported may have come before anything else was stored.
    events += [] if run.entered else [started]
    entering = _entering(state)
    entries = () if run.entered else take_input(state.log, state.input.messages, entering)
    seen = view((*state.log, *entries))
    # A call that the user has spoken past waits for nobody: the tool is whoever's it is in this run.
    state.awaited = frozenset(call.name for call in pending_calls(seen, entering.own_tools))
    await _go_on_with_turn(state, seen)
    entries, shown = await _with_answers(state, entries)
    entries = (*entries, *(() if run.entered else _asked_for(state)))
    events += [*shown, *_expired(entries)]
    if events or not run.entered:
        state.hold(RunChange(entries=entries, entered=True), events)


async def _take_over(state: RunState) -> list[Event]:
    """What an earlier worker said and the log does not have is taken back, and its ids are not used again."""
    bodies: list[bytes] = []
    number = 0
    while found := await state.runtime.store.events(state.run.id, number, PAGE):
        bodies += [event.body for event in found]
        number = found[-1].number
    for body in bodies:
        event = load_object(body) or {}
        state.said |= {id for key in IDS if isinstance(id := event.get(key), str)}
    return list(discard_lost(bodies, logged={entry.id for entry in state.log}, reason=TAKEN_OVER))


def _entering(state: RunState) -> AdmittedRun:
    return AdmittedRun(
        admitted=state.run.created,
        response_id=state.run.response_id,
        turn_id=state.run.id,
        new_id=state.runtime.new_id,
        own_tools=state.own_tools,
        patience=timedelta(seconds=state.agent.limits.client_seconds),
    )


async def _go_on_with_turn(state: RunState, seen: View) -> None:
    """A run that goes on with a turn has its time zone and its datasets: they are the turn's (F1).

    The file ids it was admitted with were never shown, so they are taken back.
    """
    store, thread = state.runtime.store, state.run.thread
    user = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
    opened = user.response_id if isinstance(user, UserMessage) else ""
    if opened in ("", state.run.response_id):
        return
    if has_files(state.input.messages):
        await store.forget_refs(thread, state.run.response_id)
    opening = await store.opening_input(thread, opened)
    if opening is not None:
        own = {name: value for name, value in state.input.props.items() if name not in OF_TURN}
        props = decode_input(load(opening)).props
        of_turn = {name: props[name] for name in OF_TURN if name in props}
        state.input = replace(state.input, props={**own, **of_turn})


async def _with_answers(state: RunState, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], list[Event]]:
    """What enters the log, and what readers get of it.

    Acting twice does no harm to such tools, so a worker that is lost here loses nothing.
    """
    calls = {call.id: call for call in pending_calls(view(state.log), state.own_tools)}
    settled, shown = list[Entry](), list[Event]()
    for entry in entries:
        call = calls.get(entry.tool_call_id) if isinstance(entry, ToolMessage) else None
        message = await _acted_on(state, entry, call) if isinstance(entry, ToolMessage) and call else None
        settled.append(message or entry)
        # Clients have the message they sent: they get how what became of it may be shown, not the same again.
        shown += ui_events(message.id, "\n".join(texts_of(message)), state.agent.locale) if message else ()
    return tuple(settled), shown


async def _acted_on(state: RunState, answer: ToolMessage, call: ToolCall) -> ToolMessage | None:
    """The result of the tool that a client answered for. An answer that is no object is left as it is."""
    tool, text = state.tools.get(call.name), "\n".join(texts_of(answer))
    if tool is None or not tool.mark.by_client or answer.error or load_object(text) is None:
        return None
    if call.runner == "client":
        # It was made of a tool of the client's, which this agent's only has the name of.
        return None
    # Whatever skill the thread is in: the call was made, and is waited for.
    acting = act(state, replace(call, arguments=text), Registry((tool,)), report_nothing)
    result = await _unless_stopped(state, acting)
    return replace(answer, parts=result.parts, error=result.error) if result else None


async def _unless_stopped(state: RunState, acting: Coroutine[object, object, ToolResult]) -> ToolResult | None:
    """What the tool answers; None where the run is to end before: the answer is kept as it came."""
    doing = asyncio.create_task(acting)
    try:
        return doing.result() if await is_done_in_time(state, doing) else None
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)


def _asked_for(state: RunState) -> Iterator[SkillChanged]:
    """The skill a request asks for (S4). It wins over the thread's, and stands behind its user message.

    A scenario alone is one of the skill that is on; without such a skill it means nothing.
    """
    options, now = run_options(state.input.props), view(state.log).skill
    skill = state.agent.skills.get((options.skill or (now.skill if now else None)) or "")
    scenario = next((one for one in skill.scenarios if one.name == options.scenario), None) if skill else None
    is_other = options.skill is not None and (now.skill if now else None) != (skill.name if skill else None)
    if is_other or scenario:
        chosen = scenario or (skill.scenario(None) if skill else None)
        name, at, id = chosen.name if chosen else None, state.run.created, state.runtime.new_id()
        yield SkillChanged(id=id, time=at, skill=skill.name if skill else None, scenario=name)


def _expired(entries: Sequence[Entry]) -> Iterator[CallAnswered]:
    """For readers: calls of the client's that were answered by us."""
    for entry in entries:
        if isinstance(entry, ToolMessage) and entry.error == EXPIRED:
            yield CallAnswered(message=entry.id, call=entry.tool_call_id, content="\n".join(texts_of(entry)))


async def _gather(state: RunState) -> None:
    """Look up what of the thread and its user is neither in the log nor in the request."""
    runtime, owner = state.runtime, state.run.owner
    named = tuple(id.lower() for id in (*state.agent.datasets, *run_options(state.input.props).datasets))
    if named:
        # Asked again: between admission and now somebody may have been shut out (F10).
        state.datasets = tuple(await runtime.store.usable_datasets(owner, named))
    if services := runtime.file_services:
        may_have = state.agent.file_input.is_on or has_files(state.log)
        state.files = await _files(state, services) if may_have else ThreadFiles(services=services)


async def _files(state: RunState, services: FileServices) -> ThreadFiles:
    refs = await state.runtime.store.file_refs(state.run.thread)
    if not refs:
        return ThreadFiles(services=services)
    seen = services if state.target.sees_images else replace(services, pictures=None)
    return await load_thread_files(seen, refs, state.log, state.runtime.clock())
