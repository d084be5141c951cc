"""Loading a claimed run: its log, its input on the way into it, its files. Nothing is written before the first step.

A client may answer in the place of a tool: the tool acts on that answer, and its result is what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from recto.agents.agent import CHAT, Agent
from recto.conversation.discard import discard_lost
from recto.conversation.events import ActivityUpdate, CallAnswered, Event, RunStarted
from recto.conversation.input.client_list import read_list, roll_back
from recto.conversation.input.run_input import RunInput, stored_input
from recto.conversation.input.take_decisions import Brought, take_decisions
from recto.conversation.input.take_input import EXPIRED, AdmittedRun, pending_calls, take_input
from recto.conversation.interrupts import DENIED
from recto.conversation.json import Json, load_object
from recto.conversation.log import Entry, SkillChanged, StateChanged, View, view
from recto.conversation.messages import ToolCall, ToolMessage, UserMessage, texts_of
from recto.conversation.state.json_patch import is_same
from recto.conversation.state.thread_state import state_events, state_sent, state_text
from recto.conversation.ui.compile_ui import ui_events
from recto.engine.ports import Signal
from recto.skills.triggers import triggered
from recto.store.ports import RunChange, StoredRun
from recto.store.store import Store
from recto.tools.ports import ToolResult, discard_progress
from recto.tools.registry import Registry
from recto.tracing.spans import NO_SPAN, TraceSpan
from recto.worker.context.prompt_context import most_history
from recto.worker.context.thread_files import has_files
from recto.worker.log_cache import CachedLog, LogQuery, is_unread
from recto.worker.log_writer import LogWriter
from recto.worker.page_inputs import PageInputs
from recto.worker.recorder import Recorder
from recto.worker.run_state import LoadedRun, RunState, is_done_in_time
from recto.worker.runtime import Runtime
from recto.worker.tools.shared_state import settle_state
from recto.worker.tools.tool_context import act

TAKEN_OVER = "The server stopped while this was being said; it is said again."
PAGE = 1_000
# From so many entries on, a page of which nothing is remembered takes longer than anybody else should wait.
COLD = 100
# What events name messages and calls by.
IDS = ("messageId", "parentMessageId", "toolCallId")
# What of `forwardedProps` belongs to a turn, not to each of its runs.
OF_TURN = ("timezone", "datasets", "voice_mode")


async def load_run(
    runtime: Runtime, row: StoredRun, asked: RunInput, signal: Signal, recorder: Recorder, *, span: TraceSpan = NO_SPAN
) -> LoadedRun:
    """A claimed run, with its input ready to enter the log with the first write, once."""
    runtime.reached("claimed")
    await runtime.tools_tried(row.agent)
    cached = await runtime.log_cache.take(log_query(runtime, row))
    said = await _said(runtime.store, row) if row.last_event else ()
    cached = await _whole_for_list(runtime, row, asked, cached)
    inputs, entries = await take_up(runtime, row, asked, cached)
    if inputs.goes_on and has_files(asked.messages):
        # The file ids it was admitted with were never shown, so they are taken back.
        await runtime.store.forget_refs(row.thread, row.response_id)
    writer = LogWriter(recorder, inputs, cached.entries, signal)
    state = RunState.of(row, inputs.agent.limits, signal, runtime.clock)
    run = LoadedRun(runtime=runtime, state=state, inputs=inputs, writer=writer, span=span)
    await _hold_input(run, entries, said)
    await inputs.load(writer.log)
    runtime.reached("entered")
    return run


async def take_up(
    runtime: Runtime, row: StoredRun, asked: RunInput, cached: CachedLog
) -> tuple[PageInputs, tuple[Entry, ...]]:
    """What a run's pages are made of, as far as it is known at once, and what of its input comes into the log."""
    agent = _agent_of(runtime, row)
    model, tools = runtime.model_of(agent), runtime.tools.get(agent.name, Registry())
    entering = replace(_entering(runtime, row, agent, tools), taken=await _taken(runtime.store, row, asked, cached))
    entries = () if row.entered or asked.compact else _taken_in(agent, cached.entries, asked, row, entering)
    seen = view((*cached.entries, *entries))
    opened = _opened_by(seen)
    goes_on = opened not in ("", row.response_id)
    inputs = PageInputs(
        runtime=runtime,
        row=row,
        goes_on=goes_on,
        asked=_without_asking(await _of_turn(runtime.store, row, asked, opened) if goes_on else asked, tools),
        agent=agent,
        model=model,
        tools=tools,
        agreed=await _agreed(runtime, row, tools),
        # A call that the user has spoken past waits for nobody: the tool is whoever's it is in this run.
        awaited=frozenset(call.name for call in pending_calls(seen, entering.own_tools)),
        # Models count differently: what one said of a page says nothing of another's.
        last=cached.last if cached.model == model.name else None,
        # Nor do its messages remember what the other was sent.
        is_cold=cached.model != model.name and len(cached.entries) >= COLD,
        shown_history=cached.history,
        sent_to=cached.model,
        answered=cached.answered,
    )
    return inputs, entries


async def _agreed(runtime: Runtime, row: StoredRun, tools: Registry) -> frozenset[str]:
    """The tools that the thread's user has agreed to once and for all. Only where some ask is it looked up."""
    if not tools.approval_schemas() or not row.last_seq:
        return frozenset()
    return frozenset((await runtime.store.get_thread(row.owner, row.thread)).agreed)


def _agent_of(runtime: Runtime, row: StoredRun) -> Agent:
    # An agent that is gone answers no more, but what it was asked is kept.
    agent = runtime.agents.get(row.agent) or Agent(name=row.agent, prompt=CHAT.prompt)
    return replace(agent, limits=agent.tiers[row.tier]) if row.tier in agent.tiers else agent


def log_query(runtime: Runtime, row: StoredRun) -> LogQuery:
    """As much of a run's log as its pages can show."""
    return LogQuery(
        thread=row.thread,
        last_seq=row.last_seq,
        born=row.thread_created,
        history=most_history(_agent_of(runtime, row)),
        counter=runtime.counter,
    )


async def _whole_for_list(runtime: Runtime, row: StoredRun, asked: RunInput, cached: CachedLog) -> CachedLog:
    """The log, whole where a client's list may go back to what was not read of it (P15)."""
    if not asked.listed or row.entered or not is_unread(cached.entries):
        return cached
    reading = read_list(view(cached.entries), asked)
    if reading.is_known and reading.back_to is None:
        return cached
    return CachedLog(entries=tuple(await runtime.store.log_after(row.thread)), born=cached.born)


async def _taken(store: Store, row: StoredRun, asked: RunInput, cached: CachedLog) -> frozenset[str]:
    """Of the ids that may be given to what enters the log, those taken by what was not read of it."""
    if row.entered or not is_unread(cached.entries):
        return frozenset()
    return await store.taken_ids(row.thread, [row.id, *[message.id for message in asked.messages]])


def _taken_in(
    agent: Agent, log: Sequence[Entry], asked: RunInput, row: StoredRun, run: AdmittedRun
) -> tuple[Entry, ...]:
    """What a request adds to the log: a rollback, what was decided of calls that wait, then what was said."""
    back, messages = (), asked.messages
    if asked.listed and agent.client_view == "roll_back":
        reading = read_list(view(log), asked, run.own_tools)
        back, messages = roll_back(reading, run), reading.taken
    left = (*log, *back)
    entries = take_input(left, messages, run)
    brought = Brought(run=row.id, resume=asked.resume, messages=asked.messages)
    return (*back, *take_decisions(left, brought, run, entries), *entries)


def _without_asking(asked: RunInput, tools: Registry) -> RunInput:
    """A request without tools that are the client's way to ask a person about one of the agent's, by its name."""
    kept = tuple([tool for tool in asked.tools if tool.name not in tools.approval_schemas()])
    return asked if len(kept) == len(asked.tools) else replace(asked, tools=kept)


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


def _opened_by(seen: View) -> str:
    """The response id that the current turn was admitted with; nothing where there is none."""
    user = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
    return user.response_id if isinstance(user, UserMessage) else ""


async def _of_turn(store: Store, row: StoredRun, asked: RunInput, opened: str) -> RunInput:
    """What a run asks for that goes on with a turn. Time zone and datasets are the turn's (F1)."""
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
    settled = (*settled, *(() if row.entered else skill_asked_for(run.inputs, writer.log, settled)))
    settled = (*settled, *(() if row.entered else _state_of(run, settled)))
    # Whoever reads a run's events knows the state from their beginning on, whatever it knew before.
    events += () if row.entered else state_events(view((*writer.log, *settled)))
    events += [*shown, *_expired(settled), *(() if row.entered else _left_out(run))]
    if events or not row.entered:
        writer.hold(RunChange(entries=settled, entered=True), events)


def _take_back(writer: LogWriter, said: Sequence[bytes]) -> list[Event]:
    """What an earlier worker said and the log does not have is taken back, and its ids are not used again."""
    for body in said:
        event = load_object(body) or {}
        writer.note_said(id for key in IDS if isinstance(id := event.get(key), str))
    logged = {entry.id for entry in writer.log}
    return list(discard_lost(said, logged=logged, reason=TAKEN_OVER, upto=writer.last_id))


async def _with_answers(run: LoadedRun, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], list[Event]]:
    """What enters the log, and what readers get of it.

    Acting twice does no harm to such tools, so a worker that is lost here loses nothing.
    """
    waiting = pending_calls(view(run.writer.log), run.inputs.tools.own_names())
    calls = {call.id: call for call in waiting}
    settled, shown = list[Entry](), list[Event]()
    for entry in entries:
        call = calls.get(entry.tool_call_id) if isinstance(entry, ToolMessage) else None
        result = await _acted_on(run, entry, call) if isinstance(entry, ToolMessage) and call else None
        if not isinstance(entry, ToolMessage) or result is None:
            settled.append(entry)
            continue
        made = settle_state(run.runtime, (*run.writer.log, *settled), result)
        message = replace(entry, parts=made.result.parts, error=made.result.error)
        settled += [message, *made.entries]
        # Clients have the message they sent: they get how what became of it may be shown, not the same again.
        shown += ui_events(message.id, "\n".join(texts_of(message)), run.inputs.agent.locale)
    return tuple(settled), shown


async def _acted_on(run: LoadedRun, answer: ToolMessage, call: ToolCall) -> ToolResult | None:
    """The result of the tool that a client answered for. An answer that is no object is left as it is."""
    tool, text = run.inputs.tools.get(call.name), "\n".join(texts_of(answer))
    if tool is None or not tool.mark.by_client or answer.error or load_object(text) is None:
        return None
    if call.runner == "client":
        # It was made of a tool of the client's, which this agent's only has the name of.
        return None
    # Whatever skill the thread is in: the call was made, and is waited for.
    acting = act(run, replace(call, arguments=text), Registry((tool,)), discard_progress)
    return await _unless_stopped(run.state, acting)


async def _unless_stopped(state: RunState, acting: Coroutine[object, object, ToolResult]) -> ToolResult | None:
    """What the tool answers; None where the run is to end before: the answer is kept as it came."""
    doing = asyncio.create_task(acting)
    try:
        return doing.result() if await is_done_in_time(state, doing) else None
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)


def skill_asked_for(inputs: PageInputs, log: Sequence[Entry], new: Sequence[Entry]) -> Iterator[SkillChanged]:
    """The skill a request asks for (S4). It wins over the thread's, and stands behind its user message.

    A scenario alone is one of the skill that is on; without such a skill it means nothing. Who asks for none, and has
    none, may say the words that take one up.
    """
    options, now = inputs.asked.options, view((*log, *new)).skill
    if options.skill is None and now is None:
        yield from _skill_spoken_of(inputs, new)
        return
    skill = inputs.agent.skills.get((options.skill or (now.skill if now else None)) or "")
    scenario = next((one for one in skill.scenarios if one.name == options.scenario), None) if skill else None
    is_other = options.skill is not None and (now.skill if now else None) != (skill.name if skill else None)
    if is_other or scenario:
        chosen = scenario or (skill.scenario(None) if skill else None)
        name, at, id = chosen.name if chosen else None, inputs.row.created, inputs.runtime.new_id()
        yield SkillChanged(id=id, time=at, skill=skill.name if skill else None, scenario=name)


def _skill_spoken_of(inputs: PageInputs, new: Sequence[Entry]) -> Iterator[SkillChanged]:
    """The skill whose triggers are in what the user says now. What was said before has had its chance."""
    said = [text for entry in new if isinstance(entry, UserMessage) for text in texts_of(entry)]
    if not said or inputs.agent.activation != "triggers":
        return
    if found := triggered(inputs.agent.skills.values(), "\n".join(said)):
        chosen = found.skill.scenario(inputs.asked.options.scenario)
        yield SkillChanged(
            id=inputs.runtime.new_id(),
            time=inputs.row.created,
            skill=found.skill.name,
            scenario=chosen.name if chosen else None,
            said=found.said,
        )


def _left_out(run: LoadedRun) -> Iterator[ActivityUpdate]:
    """For readers: parts of what was sent that could not be used. The model is told in their place."""
    if reasons := run.inputs.asked.left_out:
        content: Mapping[str, Json] = {"notes": list(reasons)}
        yield ActivityUpdate(message=f"{run.state.row.id}-left-out", activity="recto.attachments", content=content)


def _state_of(run: LoadedRun, settled: Sequence[Entry]) -> Iterator[StateChanged]:
    """What the client changed of the state that it shares with the thread."""
    inputs, log = run.inputs, run.writer.log
    now, at = view((*log, *settled)), inputs.row.created
    after = state_sent(log, now, inputs.asked.state, at)
    if not is_same(after, now.state):
        # Two changes together may be too long; that of the client alone was found not to be.
        text = state_text(after)
        text = text if len(text) <= run.runtime.state_bytes else state_text(inputs.asked.state)
        yield StateChanged(id=inputs.runtime.new_id(), time=at, value=text)


def _expired(entries: Sequence[Entry]) -> Iterator[CallAnswered]:
    """For readers: calls that waited for the client or a person, and were answered by us."""
    for entry in entries:
        if isinstance(entry, ToolMessage) and entry.error in (EXPIRED, DENIED):
            yield CallAnswered(message=entry.id, call=entry.tool_call_id, content="\n".join(texts_of(entry)))
