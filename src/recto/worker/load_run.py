"""Loading a claimed run: its log, its input on the way into it, its files. Nothing is written before the first step.

A client may answer in the place of a tool: the tool acts on that answer, and its result is what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from recto.agents.agent import CHAT, Agent
from recto.conversation.events import CallAnswered, Event, RunStarted, discard_lost
from recto.conversation.input.run_input import RunInput, stored_input
from recto.conversation.input.take_input import EXPIRED, AdmittedRun, pending_calls, take_input
from recto.conversation.json import load_object
from recto.conversation.log import Entry, SkillChanged, View, view
from recto.conversation.messages import ToolCall, ToolMessage, UserMessage, texts_of
from recto.conversation.ui.compile_ui import ui_events
from recto.engine.ports import Signal
from recto.store.ports import RunChange, StoredRun
from recto.store.store import Store
from recto.tools.ports import ToolResult, report_nothing
from recto.tools.registry import Registry
from recto.worker.context.prompt_context import most_history
from recto.worker.context.thread_files import has_files
from recto.worker.log_cache import CachedLog, LogQuery, is_unread
from recto.worker.log_writer import LogWriter
from recto.worker.page_inputs import PageInputs
from recto.worker.recorder import Recorder
from recto.worker.run_state import LoadedRun, RunState, is_done_in_time
from recto.worker.runtime import Runtime
from recto.worker.tools.tool_context import act

TAKEN_OVER = "The server stopped while this was being said; it is said again."
PAGE = 1_000
# From so many entries on, a page of which nothing is remembered takes longer than anybody else should wait.
COLD = 100
# What events name messages and calls by.
IDS = ("messageId", "parentMessageId", "toolCallId")
# What of `forwardedProps` belongs to a turn, not to each of its runs.
OF_TURN = ("timezone", "datasets", "voice_mode")


async def load_run(runtime: Runtime, row: StoredRun, asked: RunInput, signal: Signal, recorder: Recorder) -> LoadedRun:
    """A claimed run, with its input ready to enter the log with the first write, once."""
    runtime.reached("claimed")
    # An agent that is gone answers no more, but what it was asked is kept.
    agent = _for_tier(runtime.agents.get(row.agent) or Agent(name=row.agent, prompt=CHAT.prompt), row.tier)
    await runtime.tools_tried(agent.name)
    model, tools = runtime.model_of(agent), runtime.tools.get(agent.name, Registry())
    cached = await runtime.log_cache.take(_wanted(runtime, row, agent))
    said = await _said(runtime.store, row) if row.last_event else ()
    entering = replace(_entering(runtime, row, agent, tools), taken=await _taken(runtime.store, row, asked, cached))
    entries = () if row.entered else take_input(cached.entries, asked.messages, entering)
    seen = view((*cached.entries, *entries))
    inputs = PageInputs(
        runtime=runtime,
        row=row,
        asked=await _of_turn(runtime.store, row, asked, seen),
        agent=agent,
        model=model,
        tools=tools,
        # A call that the user has spoken past waits for nobody: the tool is whoever's it is in this run.
        awaited=frozenset(call.name for call in pending_calls(seen, entering.own_tools)),
        # Models count differently: what one said of a page says nothing of another's.
        last=cached.last if cached.model == model.name else None,
        # Nor do its messages remember what the other was sent.
        is_cold=cached.model != model.name and len(cached.entries) >= COLD,
        shown_history=cached.history,
    )
    writer = LogWriter(recorder, inputs, cached.entries, signal)
    state = RunState.of(row, agent.limits, signal, runtime.clock)
    run = LoadedRun(runtime=runtime, state=state, inputs=inputs, writer=writer)
    await _hold_input(run, entries, said)
    await inputs.load(writer.log)
    runtime.reached("entered")
    return run


def _for_tier(agent: Agent, tier: str) -> Agent:
    return replace(agent, limits=agent.tiers[tier]) if tier in agent.tiers else agent


def _wanted(runtime: Runtime, row: StoredRun, agent: Agent) -> LogQuery:
    return LogQuery(
        thread=row.thread,
        last_seq=row.last_seq,
        born=row.thread_created,
        history=most_history(agent),
        counter=runtime.counter,
    )


async def _taken(store: Store, row: StoredRun, asked: RunInput, cached: CachedLog) -> frozenset[str]:
    """Of the ids that may be given to what enters the log, those taken by what was not read of it."""
    if row.entered or not is_unread(cached.entries):
        return frozenset()
    return await store.taken_ids(row.thread, [row.id, *[message.id for message in asked.messages]])


async def _said(store: Store, row: StoredRun) -> Sequence[bytes]:
    """The events that an earlier worker's readers have."""
    bodies: list[bytes] = []
    number = 0
    while found := await store.events(row.id, number, PAGE):
        bodies += [event.body for event in found]
        number = found[-1].number
    return bodies


def _entering(runtime: Runtime, row: StoredRun, agent: Agent, tools: Registry) -> AdmittedRun:
    return AdmittedRun(
        admitted=row.created,
        response_id=row.response_id,
        turn_id=row.id,
        new_id=runtime.new_id,
        own_tools=tools.own_names(),
        patience=timedelta(seconds=agent.limits.client_seconds),
    )


async def _of_turn(store: Store, row: StoredRun, asked: RunInput, seen: View) -> RunInput:
    """What a run asks for. One that goes on with a turn has its time zone and its datasets: they are the turn's (F1).

    The file ids it was admitted with were never shown, so they are taken back.
    """
    user = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
    opened = user.response_id if isinstance(user, UserMessage) else ""
    if opened in ("", row.response_id):
        return asked
    if has_files(asked.messages):
        await store.forget_refs(row.thread, row.response_id)
    found = await store.opening_input(row.thread, opened)
    if found is None:
        return asked
    opening = stored_input(found)
    own = {name: value for name, value in asked.props.items() if name not in OF_TURN}
    of_turn = {name: opening.props[name] for name in OF_TURN if name in opening.props}
    options = replace(asked.options, **{name: getattr(opening.options, name) for name in OF_TURN})
    return replace(asked, props={**own, **of_turn}, options=options)


async def _hold_input(run: LoadedRun, entries: Sequence[Entry], said: Sequence[bytes]) -> None:
    """Have what the client sent ready to enter the log, once; and what readers have to know before."""
    row, writer = run.state.row, run.writer
    events = _take_back(writer, said)
    # Progress that an earlier worker reported may have come before anything else was stored.
    events += [] if row.entered else [RunStarted(thread=row.thread, run=row.name, parent=run.inputs.asked.parent)]
    settled, shown = await _with_answers(run, entries)
    settled = (*settled, *(() if row.entered else _asked_for(run.inputs, writer.log)))
    events += [*shown, *_expired(settled)]
    if events or not row.entered:
        writer.hold(RunChange(entries=settled, entered=True), events)


def _take_back(writer: LogWriter, said: Sequence[bytes]) -> list[Event]:
    """What an earlier worker said and the log does not have is taken back, and its ids are not used again."""
    for body in said:
        event = load_object(body) or {}
        writer.note_said(id for key in IDS if isinstance(id := event.get(key), str))
    return list(discard_lost(said, logged={entry.id for entry in writer.log}, reason=TAKEN_OVER))


async def _with_answers(run: LoadedRun, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], list[Event]]:
    """What enters the log, and what readers get of it.

    Acting twice does no harm to such tools, so a worker that is lost here loses nothing.
    """
    waiting = pending_calls(view(run.writer.log), run.inputs.tools.own_names())
    calls = {call.id: call for call in waiting}
    settled, shown = list[Entry](), list[Event]()
    for entry in entries:
        call = calls.get(entry.tool_call_id) if isinstance(entry, ToolMessage) else None
        message = await _acted_on(run, entry, call) if isinstance(entry, ToolMessage) and call else None
        settled.append(message or entry)
        # Clients have the message they sent: they get how what became of it may be shown, not the same again.
        shown += ui_events(message.id, "\n".join(texts_of(message)), run.inputs.agent.locale) if message else ()
    return tuple(settled), shown


async def _acted_on(run: LoadedRun, answer: ToolMessage, call: ToolCall) -> ToolMessage | None:
    """The result of the tool that a client answered for. An answer that is no object is left as it is."""
    tool, text = run.inputs.tools.get(call.name), "\n".join(texts_of(answer))
    if tool is None or not tool.mark.by_client or answer.error or load_object(text) is None:
        return None
    if call.runner == "client":
        # It was made of a tool of the client's, which this agent's only has the name of.
        return None
    # Whatever skill the thread is in: the call was made, and is waited for.
    acting = act(run, replace(call, arguments=text), Registry((tool,)), report_nothing)
    result = await _unless_stopped(run.state, acting)
    return replace(answer, parts=result.parts, error=result.error) if result else None


async def _unless_stopped(state: RunState, acting: Coroutine[object, object, ToolResult]) -> ToolResult | None:
    """What the tool answers; None where the run is to end before: the answer is kept as it came."""
    doing = asyncio.create_task(acting)
    try:
        return doing.result() if await is_done_in_time(state, doing) else None
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)


def _asked_for(inputs: PageInputs, log: Sequence[Entry]) -> Iterator[SkillChanged]:
    """The skill a request asks for (S4). It wins over the thread's, and stands behind its user message.

    A scenario alone is one of the skill that is on; without such a skill it means nothing.
    """
    options, now = inputs.asked.options, view(log).skill
    skill = inputs.agent.skills.get((options.skill or (now.skill if now else None)) or "")
    scenario = next((one for one in skill.scenarios if one.name == options.scenario), None) if skill else None
    is_other = options.skill is not None and (now.skill if now else None) != (skill.name if skill else None)
    if is_other or scenario:
        chosen = scenario or (skill.scenario(None) if skill else None)
        name, at, id = chosen.name if chosen else None, inputs.row.created, inputs.runtime.new_id()
        yield SkillChanged(id=id, time=at, skill=skill.name if skill else None, scenario=name)


def _expired(entries: Sequence[Entry]) -> Iterator[CallAnswered]:
    """For readers: calls of the client's that were answered by us."""
    for entry in entries:
        if isinstance(entry, ToolMessage) and entry.error == EXPIRED:
            yield CallAnswered(message=entry.id, call=entry.tool_call_id, content="\n".join(texts_of(entry)))
