"""Loading of a claimed run: its log, the entries that its input adds, and its files.

The first step stores these entries. If a client answers in place of a tool, that tool processes the answer, and the log
gets the tool's result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from recto.agents.agent import CHAT, Agent
from recto.conversation.events import ActivityUpdate, Event, RunStarted, ToolCallResult, discard_lost
from recto.conversation.input.client_list import read_list, roll_back_unlisted
from recto.conversation.input.input_entries import (
    EXPIRED,
    AdmittedRun,
    DecisionInput,
    admit_decisions,
    admit_input,
    pending_calls,
)
from recto.conversation.input.run_input import RunInput, stored_input
from recto.conversation.interrupts import DENIED
from recto.conversation.json import Json, load_object
from recto.conversation.log import Entry, SkillChanged, StateChanged, view
from recto.conversation.message_files import FileRef
from recto.conversation.messages import ToolCall, ToolMessage, UserMessage, texts_of
from recto.conversation.next_step import CallModel, Compact, Finished, RunTools, next_step
from recto.conversation.thread_state import is_same, merge_sent_state, state_events, state_text
from recto.conversation.ui.compile_ui import ui_events
from recto.engine.ports import NextStep, Preview, Signal
from recto.page.text.tokens import known_tokens, note_tokens
from recto.skills.directory import triggered
from recto.store.ports import RunChange, StoredRun
from recto.tools.ports import ToolResult, discard_progress
from recto.tools.registry import Registry
from recto.tracing.spans import NO_SPAN, TraceSpan
from recto.worker.context.page_facts import needs_summary, next_page
from recto.worker.context.prompt_context import build_quote, most_history
from recto.worker.context.thread_files import has_files
from recto.worker.log_cache import CachedLog, LogQuery, is_unread
from recto.worker.log_writer import LogWriter
from recto.worker.recorder import Recorder
from recto.worker.run_inputs import PageState, RunInputs
from recto.worker.run_state import LoadedRun, RunState, is_done_in_time, snapshot
from recto.worker.runtime import Runtime
from recto.worker.tools.shared_state import apply_state_changes
from recto.worker.tools.tool_context import execute

TAKEN_OVER = "The server stopped during this reply; it starts again."
EVENTS_AT_ONCE = 1_000
# Number of log entries above which the first page is assembled in a thread, because it would delay other runs.
COLD_ENTRIES = 100
# Fields of events that contain the ids of messages and calls.
ID_FIELDS = ("messageId", "parentMessageId", "toolCallId")
# Fields of `forwardedProps` that apply to a whole turn. All other fields apply to one run.
TURN_OPTIONS = ("timezone", "datasets", "voice_mode")


async def load_run(
    runtime: Runtime,
    row: StoredRun,
    request: RunInput,
    signal: Signal,
    recorder: Recorder,
    *,
    span: TraceSpan = NO_SPAN,
) -> LoadedRun:
    """Load a claimed run. Its first write stores its input, once."""
    runtime.checkpoint("claimed")
    await runtime.tools.discover(row.agent)
    cached = await runtime.log_cache.read(log_query(runtime, row))
    # Events that earlier workers of this run published.
    sent_events, number = list[bytes](), 0
    while row.last_event and (events := await runtime.store.events.list_after(row.id, number, EVENTS_AT_ONCE)):
        sent_events += [event.body for event in events]
        number = events[-1].number
    cached = await _read_all_for_list(runtime, row, request, cached)
    inputs, entries = await prepare_inputs(runtime, row, request, cached)
    if inputs.continues_turn and has_files(request.messages):
        # Delete the file ids from admission: they belong to a turn that was not opened, so pages never show them.
        await runtime.store.files.delete_refs(row.thread, row.response_id)
    writer = LogWriter(recorder, inputs, cached.entries, signal)
    state = RunState.of(row, inputs.agent.limits, signal, runtime.clock)
    run = LoadedRun(runtime=runtime, state=state, inputs=inputs, writer=writer, span=span)
    await _hold_input(run, entries, sent_events)
    await inputs.load_files(writer.log)
    runtime.checkpoint("entered")
    return run


async def prepare_inputs(
    runtime: Runtime, row: StoredRun, request: RunInput, cached: CachedLog
) -> tuple[RunInputs, tuple[Entry, ...]]:
    """Return the inputs of a run without its files, and the entries that its request adds to the log."""
    store, agent = runtime.store, _agent_of(runtime, row)
    model, tools = runtime.models.of(agent), runtime.tools.registries.get(agent.name, Registry())
    used_ids = frozenset[str]()
    if is_unread(cached.entries) and not row.entered:
        used_ids = await store.log.find_ids(row.thread, [row.id, *[message.id for message in request.messages]])
    admission = AdmittedRun(
        admitted_at=row.created,
        response_id=row.response_id,
        turn_id=row.id,
        new_id=runtime.new_id,
        own_tools=tools.own_names(),
        used_ids=used_ids,
        patience=timedelta(seconds=agent.limits.client_seconds),
    )
    entries = () if row.entered or request.compact else _admit(agent, cached.entries, request, row, admission)
    log_view = view((*cached.entries, *entries))
    user = log_view.messages[log_view.turn_start] if log_view.turn_start < len(log_view.messages) else None
    opening_id = user.response_id if isinstance(user, UserMessage) else ""
    continues_turn = opening_id not in ("", row.response_id)
    if continues_turn:
        request = await _with_turn_options(runtime, row, request, opening_id)
    # Drop client tools that have the name of a confirmed tool. They are the client's way to ask a person for approval.
    confirmed = tools.approval_schemas()
    if any(tool.name in confirmed for tool in request.tools):
        request = replace(request, tools=tuple([tool for tool in request.tools if tool.name not in confirmed]))
    approved = (await store.threads.get(row.owner, row.thread)).agreed if confirmed and row.last_seq else ()
    # Look datasets up again, because the user may have lost access since admission (F10).
    datasets = tuple(id.lower() for id in (*agent.datasets, *request.options.datasets))
    inputs = RunInputs(
        runtime=runtime,
        row=row,
        request=request,
        agent=agent,
        model=model,
        approved_tools=frozenset(approved),
        awaited_tools=frozenset(call.name for call in pending_calls(log_view, admission.own_tools)),
        continues_turn=continues_turn,
        datasets=tuple(await store.datasets.find_usable(row.owner, datasets)) if datasets else (),
        pages=PageState(
            tools=tools,
            # Use the calibration only for the same model, because models count tokens differently. Messages also
            # remember their bytes for one model only.
            calibration=cached.calibration if cached.model == model.name else None,
            is_cold=cached.model != model.name and len(cached.entries) >= COLD_ENTRIES,
            history=cached.history,
            last_model=cached.model,
            last_answer=cached.last_answer,
        ),
    )
    return inputs, entries


def _agent_of(runtime: Runtime, row: StoredRun) -> Agent:
    # Store the input of a run even if its agent no longer exists.
    agent = runtime.agents.get(row.agent) or Agent(name=row.agent, prompt=CHAT.prompt)
    return replace(agent, limits=agent.tiers[row.tier]) if row.tier in agent.tiers else agent


def log_query(runtime: Runtime, row: StoredRun) -> LogQuery:
    """Return the query for the part of a run's log that its pages can show."""
    return LogQuery(
        thread=row.thread,
        last_seq=row.last_seq,
        thread_created=row.thread_created,
        history=most_history(_agent_of(runtime, row)),
        counter=runtime.models.counter,
    )


async def _read_all_for_list(runtime: Runtime, row: StoredRun, request: RunInput, cached: CachedLog) -> CachedLog:
    """Return the complete log if the client's message list may roll back to its unread part (P15)."""
    if not request.listed_ids or row.entered or not is_unread(cached.entries):
        return cached
    reading = read_list(view(cached.entries), request)
    if reading.is_known and reading.back_to is None:
        return cached
    entries = tuple(await runtime.store.log.read_after(row.thread))
    return CachedLog(entries=entries, thread_created=cached.thread_created)


def _admit(
    agent: Agent, log: Sequence[Entry], request: RunInput, row: StoredRun, run: AdmittedRun
) -> tuple[Entry, ...]:
    """Return the entries that a request adds to the log: a rollback, decisions about open calls, then messages."""
    rollback, messages = (), request.messages
    if request.listed_ids and agent.client_view == "roll_back":
        reading = read_list(view(log), request, run.own_tools)
        rollback, messages = roll_back_unlisted(reading, run), reading.messages
    log = (*log, *rollback)
    entries = admit_input(log, messages, run)
    decisions = DecisionInput(run=row.id, resume=request.resume, messages=request.messages)
    return (*rollback, *admit_decisions(log, decisions, run, entries), *entries)


async def _with_turn_options(runtime: Runtime, row: StoredRun, request: RunInput, opening_id: str) -> RunInput:
    """Return a request with the time zone and the datasets from the run that opened its turn (F1)."""
    body = await runtime.store.runs.read_opening_input(row.thread, opening_id)
    if body is None:
        return request
    opening = stored_input(body)
    own = {name: value for name, value in request.props.items() if name not in TURN_OPTIONS}
    turn_props = {name: opening.props[name] for name in TURN_OPTIONS if name in opening.props}
    options = replace(request.options, **{name: getattr(opening.options, name) for name in TURN_OPTIONS})
    return replace(request, props={**own, **turn_props}, options=options)


async def _hold_input(run: LoadedRun, entries: Sequence[Entry], sent_events: Sequence[bytes]) -> None:
    """Hold the entries of the input and the first events for readers until the first write."""
    row, writer, inputs = run.state.row, run.writer, run.inputs
    for body in sent_events:
        event = load_object(body) or {}
        writer.reserve_ids(id for key in ID_FIELDS if isinstance(id := event.get(key), str))
    logged = {entry.id for entry in writer.log}
    events = list(discard_lost(sent_events, logged=logged, reason=TAKEN_OVER, upto=writer.last_id))
    if row.entered:
        if events:
            writer.hold(RunChange(entered=True), events)
        return
    # Earlier events may precede this one, because an earlier worker may have reported progress before it stored
    # anything.
    events.append(RunStarted(thread=row.thread, run=row.name, parent=inputs.request.parent))
    new, answer_events = await _with_answers(run, entries)
    new = (*new, *skill_changes(inputs, writer.log, new))
    new = (*new, *_state_changes(run, new))
    # Send the shared state to readers first.
    events += [*state_events(view((*writer.log, *new))), *answer_events]
    # The server itself answers calls that waited too long or were denied, so readers need these results.
    events += [
        ToolCallResult(message=entry.id, call=entry.tool_call_id, content="\n".join(texts_of(entry)))
        for entry in new
        if isinstance(entry, ToolMessage) and entry.error in (EXPIRED, DENIED)
    ]
    if notes := inputs.request.left_out:
        content: Mapping[str, Json] = {"notes": list(notes)}
        events.append(ActivityUpdate(message=f"{row.id}-left-out", activity="recto.attachments", content=content))
    writer.hold(RunChange(entries=new, entered=True), events)


async def _with_answers(run: LoadedRun, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], list[Event]]:
    """Return the entries with the results of tools that act on a client's answer, and the events that show the results.

    These tools must tolerate repetition, because another worker repeats them after a crash.
    """
    waiting = pending_calls(view(run.writer.log), run.inputs.pages.tools.own_names())
    calls = {call.id: call for call in waiting}
    results, events = list[Entry](), list[Event]()
    for entry in entries:
        call = calls.get(entry.tool_call_id) if isinstance(entry, ToolMessage) else None
        result = await _act_on_answer(run, entry, call) if isinstance(entry, ToolMessage) and call else None
        if not isinstance(entry, ToolMessage) or result is None:
            results.append(entry)
            continue
        update = apply_state_changes(run.runtime, (*run.writer.log, *results), result)
        message = replace(entry, parts=update.result.parts, error=update.result.error)
        results += [message, *update.entries]
        # Clients already have the message that they sent. They need only the user interface of the result.
        events += ui_events(message.id, "\n".join(texts_of(message)), run.inputs.agent.locale)
    return tuple(results), events


async def _act_on_answer(run: LoadedRun, answer: ToolMessage, call: ToolCall) -> ToolResult | None:
    """Return the result of a tool that acts on a client's answer.

    Return None if no tool does, or if the run ends first.
    """
    tool, text = run.inputs.pages.tools.get(call.name), "\n".join(texts_of(answer))
    # If the runner of the call is the client, the call was for a client tool of the same name.
    if tool is None or not tool.mark.by_client or answer.error or call.runner == "client" or load_object(text) is None:
        return None
    # The call was already made and is waiting, so the tool runs whatever skill is active.
    action = execute(run, replace(call, arguments=text), Registry((tool,)), discard_progress)
    task = asyncio.create_task(action)
    try:
        return task.result() if await is_done_in_time(run.state, task) else None
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def skill_changes(inputs: RunInputs, log: Sequence[Entry], new: Sequence[Entry]) -> Iterator[SkillChanged]:
    """Yield the skill that a request activates (S4), by its options or else by a trigger in its message.

    A scenario without a skill applies to the active skill; without an active skill it is ignored.
    """
    options, active, agent = inputs.request.options, view((*log, *new)).skill, inputs.agent
    created, new_id = inputs.row.created, inputs.runtime.new_id
    if options.skill is None and active is None:
        texts = [text for entry in new if isinstance(entry, UserMessage) for text in texts_of(entry)]
        match = triggered(agent.skills.values(), "\n".join(texts)) if agent.activation == "triggers" else None
        if match:
            scenario = match.skill.scenario(options.scenario)
            name = scenario.name if scenario else None
            yield SkillChanged(id=new_id(), time=created, skill=match.skill.name, scenario=name, said=match.triggers)
        return
    active_name = active.skill if active else None
    skill = agent.skills.get(options.skill or active_name or "")
    scenario = next((one for one in skill.scenarios if one.name == options.scenario), None) if skill else None
    is_other = options.skill is not None and active_name != (skill.name if skill else None)
    if is_other or scenario:
        scenario = scenario or (skill.scenario(None) if skill else None)
        name = scenario.name if scenario else None
        yield SkillChanged(id=new_id(), time=created, skill=skill.name if skill else None, scenario=name)


def _state_changes(run: LoadedRun, new: Sequence[Entry]) -> Iterator[StateChanged]:
    """Yield the client's change of the state that it shares with the thread."""
    inputs, log = run.inputs, run.writer.log
    before, created, client_state = view((*log, *new)), inputs.row.created, inputs.request.state
    after = merge_sent_state(log, before, client_state, created)
    if not is_same(after, before.state):
        # Admission checked the size of the client's state, but not the size after merging.
        text = state_text(after)
        text = text if len(text) <= run.runtime.tools.state_bytes else state_text(client_state)
        yield StateChanged(id=inputs.runtime.new_id(), time=created, value=text)


FULL = "The page has no room: a run would summarise old messages first and send another page."
ACTS = "The tool {name} would act on the client's answer first; this page shows the answer in place of its result."
BEFORE = {
    "run_tools": "A run would run tools first; this page has no results of them.",
    "wait_for_client": "A run would wait for the results of the client's calls, and send nothing.",
    "finished": "There is nothing to answer: a run would end, and send nothing.",
}


async def preview(runtime: Runtime, row: StoredRun, request: RunInput, refs: Sequence[FileRef] = ()) -> Preview:
    """Return the page of a run that is not stored. `refs` are the files of its request."""
    cached = await runtime.log_cache.read(log_query(runtime, row))
    # Assemble from copies: messages remember their pages, and those of the thread must remember only pages that were
    # sent.
    log = tuple([replace(entry) for entry in cached.entries])
    for entry, copy in zip(cached.entries, log, strict=True):
        if (tokens := known_tokens(entry, runtime.models.counter.name)) is not None:
            note_tokens(copy, runtime.models.counter.name, tokens)
    inputs, entries = await prepare_inputs(runtime, row, request, replace(cached, entries=log, model=""))
    pages = inputs.pages
    pages.calibrate(cached.calibration if cached.model == inputs.model.name else None)
    pages.note_sent(cached.model)
    notes = list(_unperformed_actions(inputs, log, entries))
    log = (*log, *entries, *skill_changes(inputs, log, entries))
    # A run that continues a turn does not use the file ids that admission reserved for a new turn.
    new = [ref for ref in refs if not (inputs.continues_turn and ref.id.rpartition("-")[0] == row.response_id)]
    await inputs.load_files(log, new)
    files = inputs.open_tool_files(log) if pages.files.refs else None
    models = runtime.models
    pages.use_quote(await build_quote(inputs.agent, files, models.counter, discard_progress, models.quote_gate))
    _, page, manifest = await next_page(inputs, log)
    state = RunState.of(row, inputs.agent.limits, Signal(), runtime.clock)
    step = _name_of(next_step(log, snapshot(state, inputs)))
    if step == "call_model" and needs_summary(inputs, log, manifest):
        step = "compact"
    notes += [FULL] if step == "compact" else [BEFORE[step]] if step in BEFORE else []
    return Preview(page=page, manifest=manifest, model=inputs.model.name, next=step, notes=tuple(notes))


def _unperformed_actions(inputs: RunInputs, log: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[str]:
    """Yield a note for each tool that would act on a client's answer."""
    tools = inputs.pages.tools
    calls = {call.id: call for call in pending_calls(view(log), tools.own_names())}
    for entry in entries:
        call = calls.get(entry.tool_call_id) if isinstance(entry, ToolMessage) else None
        tool = tools.get(call.name) if call and call.runner != "client" else None
        if tool and tool.mark.by_client:
            yield ACTS.format(name=tool.name)


def _name_of(step: object) -> NextStep:
    match step:
        case CallModel():
            return "call_model"
        case Compact():
            return "compact"
        case RunTools():
            return "run_tools"
        case Finished():
            return "finished"
        case _:
            return "wait_for_client"
