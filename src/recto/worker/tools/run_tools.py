"""Tool calls of a reply: each start is stored before it acts, all act at once that do not work on what others change,
and each result is stored as it comes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from recto.conversation.events import Event, ToolCallResult
from recto.conversation.input.input_entries import EXPIRED
from recto.conversation.interrupts import DENIED, UNANSWERED, denial_text, interrupts_of
from recto.conversation.json import Json, dump, load_object
from recto.conversation.log import ConfirmDecided, Entry, SkillChanged, ToolStarted, View, view
from recto.conversation.messages import AssistantMessage, Text, ToolCall, ToolMessage, ToolPart
from recto.conversation.next_step import INVALID_ARGUMENTS, DeniedCall, RunTools, WaitForClient
from recto.conversation.ui.compile_ui import load_hinted, ui_events
from recto.page.wire.formats import encode
from recto.store.ports import RunChange
from recto.tools.mark import Mark
from recto.tools.ports import ToolResult, discard_progress
from recto.tools.registry import Registry
from recto.worker.run_state import LoadedRun
from recto.worker.runtime import Runtime
from recto.worker.tools.keep_files import snapshot_files
from recto.worker.tools.shared_state import settle_state
from recto.worker.tools.tool_context import execute, find_tools_of_reply, replace_file_ids
from recto.worker.tools.tool_progress import ProgressReporter

INTERRUPTED, CUT_OFF, TOO_MANY = "interrupted", "cut_off", "too_many_calls"
LOST = (
    "{name} was started and then interrupted; whether it finished is not known. "
    "It was not started again. Look at what is there before you do."
)
HALF = "The call of {name} was cut off while you were writing it, so it was not run. Write it again, shorter."
TOO_MANY_CALLS = (
    "At most {most} calls of one reply are run. This one and those after it were not: make them again if you still "
    "need them, fewer at a time."
)
STOPPED = "{name} was stopped because the run was ended. It may have done part of its work."
# What a person changed of a call and said to it, told with its result; in one that is read as JSON, by names.
CHANGED = "\n\n(A person changed the arguments before they agreed. It was called with: {arguments})"
AGREED = "\n\n(The person who agreed said: {words})"
CALLED_WITH, PERSON_SAID = "called_with", "person_said"
REPEATED = "\n\n(You made this very call with this very result "
REPEATED_MORE = (
    "{count} times in this turn. Making it again will change nothing: do something else, or answer with what you have.)"
)
# How often a call had an answer: by its name, its arguments, and the answer without the notice.
Earlier = Counter[tuple[str, str, tuple[ToolPart, ...]]]


async def run_tools(run: LoadedRun, step: RunTools) -> None:
    """Settle what was lost or cut off, start the rest, and wait for all of them."""
    settled = [(call, _settled(call, LOST, INTERRUPTED)) for call in step.interrupted]
    settled += [(call, _settled(call, HALF, CUT_OFF)) for call in step.cut_off]
    beyond = TOO_MANY_CALLS.format(most=run.state.limits.calls)
    settled += [(call, ToolResult(parts=(Text(text=beyond),), error=TOO_MANY)) for call in step.too_many]
    settled += [(call, _settled(call, UNANSWERED, EXPIRED)) for call in step.expired]
    settled += [(denied.call, _denied(denied)) for denied in step.denied]
    tools = find_tools_of_reply(run.inputs, run.writer.log)
    async with snapshot_files(run, step.start, tools):
        await _start(run, step.start, settled)
        await _act_all(run, step, tools)


async def _act_all(run: LoadedRun, step: RunTools, tools: Registry) -> None:
    acting = _acting(run, step.start, tools, _earlier(view(run.writer.log), step.start))
    try:
        await asyncio.gather(*acting)
    except asyncio.CancelledError:
        # Each of them has ended or was left behind by now, so nothing is written for it after this.
        if run.state.is_stopping:
            await _settle_stopped(run, step.start)
        raise
    finally:
        for task in acting:
            task.cancel()
        await asyncio.gather(*acting, return_exceptions=True)


async def send_back_bad_calls(run: LoadedRun, step: WaitForClient) -> bool:
    """Answer those calls whose arguments do not match their tool's schema; whether there were any.

    Neither the client nor a person has to take them: the model is told what is wrong, and writes them again.
    """
    runtime, inputs = run.runtime, run.inputs
    tools = find_tools_of_reply(inputs, run.writer.log) if step.confirm else Registry()
    brought = {tool.name: tool.parameters for tool in inputs.request.tools}
    urls = inputs.files.fresh_urls(runtime.clock())
    # As their tools will get them: a schema may ask for a url where the model wrote an id (F8). Without its schema
    # there is nothing to check a client's call by: it was found good when it was made.
    checked = [(call, replace_file_ids(call, urls), brought[call.name]) for call in step.calls if call.name in brought]
    for call in [call for call in step.confirm if call.name in tools]:
        tool = tools[call.name]
        checked.append((call, replace_file_ids(call, urls) if tool.mark.external else call, tool.offer.parameters))
    advices = await runtime.tools.schemas.check([(sent.arguments, schema) for _, sent, schema in checked])
    messages = [
        _message(runtime, call, ToolResult(parts=(Text(text=advice),), error=INVALID_ARGUMENTS))
        for (call, _, _), advice in zip(checked, advices, strict=True)
        if advice is not None
    ]
    # Nobody is asked about a tool that there is not.
    unknown = [call for call in step.confirm if call.name not in tools]
    messages += [_message(runtime, call, await execute(run, call, tools, discard_progress)) for call in unknown]
    if messages:
        await run.writer.write(RunChange(entries=messages), _events_of(messages, inputs.agent.locale))
    return bool(messages)


def _settled(call: ToolCall, text: str, error: str) -> ToolResult:
    return ToolResult(parts=(Text(text=text.format(name=call.name)),), error=error)


def _denied(denied: DeniedCall) -> ToolResult:
    return ToolResult(parts=(Text(text=denial_text(denied.call.name, denied.words)),), error=DENIED)


async def _start(run: LoadedRun, calls: Sequence[ToolCall], settled: Sequence[tuple[ToolCall, ToolResult]]) -> None:
    runtime, reply = run.runtime, view(run.writer.log).reply
    now, message = runtime.clock(), reply.id if reply else ""
    starts = [ToolStarted(id=runtime.new_id(), time=now, message=message, call=call.id) for call in calls]
    results = [_message(runtime, call, result) for call, result in settled]
    entries: list[Entry] = [*results, *starts]
    await run.writer.write(RunChange(entries=entries), _events_of(results, run.inputs.agent.locale))
    runtime.checkpoint("tools_started")


def _acting(run: LoadedRun, calls: Sequence[ToolCall], tools: Registry, earlier: Earlier) -> list[asyncio.Task[None]]:
    """All at once, but for those that work on what an earlier one may change, or change what it works on."""
    acting = list[asyncio.Task[None]]()
    marks = [tools[call.name].mark if call.name in tools else Mark() for call in calls]
    for place, call in enumerate(calls):
        before = [task for task, mark in zip(acting, marks, strict=False) if mark.precedes(marks[place])]
        acting.append(asyncio.create_task(_act(run, call, tools, earlier, before)))
    return acting


async def _act(
    run: LoadedRun, call: ToolCall, tools: Registry, earlier: Earlier, before: Sequence[asyncio.Task[None]]
) -> None:
    if before:
        await asyncio.wait(before)
    # Shown again by another worker it has the same id, and so takes its place.
    runtime = run.runtime
    progress = ProgressReporter(run.writer.mention, f"{call.id}-progress", runtime.clock)
    try:
        result = await execute(run, call, tools, progress)
    finally:
        progress.end()
    runtime.checkpoint("tool_acted")
    result = _with_decision(run.writer.log, call, result)
    if result.changes:
        # One after the other: each changes the state that the one before it has left.
        async with run.state_turn:
            await _store(run, call, earlier, result)
    else:
        await _store(run, call, earlier, result)
    runtime.checkpoint("tool_ended")


async def _store(run: LoadedRun, call: ToolCall, earlier: Earlier, acted: ToolResult) -> None:
    runtime, settled = run.runtime, settle_state(run.runtime, run.writer.log, acted)
    result = settled.result
    message = _message(runtime, call, _with_notice(earlier[_same(call, result.parts)] + 1, result))
    # In one write: whoever goes on after a crash goes on in the skill, and with the state.
    change = RunChange(entries=(message, *_activated(runtime, result), *settled.entries))
    await run.writer.write(change, [*_events_of((message,), run.inputs.agent.locale), *settled.events])


def _activated(runtime: Runtime, result: ToolResult) -> Iterator[SkillChanged]:
    if result.activates:
        skill, scenario = result.activates.skill, result.activates.scenario
        yield SkillChanged(id=runtime.new_id(), time=runtime.clock(), skill=skill, scenario=scenario)


async def _settle_stopped(run: LoadedRun, calls: Sequence[ToolCall]) -> None:
    """The run is broken off: the model is told which tools did not come to their end."""
    answered = {entry.tool_call_id for entry in run.writer.log if isinstance(entry, ToolMessage)}
    left = [call for call in calls if call.id not in answered]
    messages = [_message(run.runtime, call, _settled(call, STOPPED, INTERRUPTED)) for call in left]
    await run.writer.write(RunChange(entries=messages), _events_of(messages, run.inputs.agent.locale))


def _message(runtime: Runtime, call: ToolCall, result: ToolResult) -> ToolMessage:
    return ToolMessage(
        id=runtime.new_id(),
        time=runtime.clock(),
        tool_call_id=call.id,
        parts=result.parts,
        error=result.error,
    )


def _events_of(messages: Sequence[ToolMessage], locale: str) -> list[Event]:
    return [event for message in messages for event in _answered(message, locale)]


def _answered(message: ToolMessage, locale: str) -> tuple[Event, ...]:
    """The result, and how it may be shown, where it says so."""
    content = _content(message)
    answered = ToolCallResult(message=message.id, call=message.tool_call_id, content=content)
    return (answered, *ui_events(message.id, content, locale))


def _content(message: ToolMessage) -> Json:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    if len(texts) == len(message.parts):
        return "\n".join(texts)
    encoded = encode((message,), "ag-ui")[0]
    return encoded["content"] if isinstance(encoded, dict) else ""


def _earlier(seen: View, wanted: Sequence[ToolCall]) -> Earlier:
    """How calls like these were answered in the turn. Those of the reply at work do not count."""
    names, answered = {(call.name, call.arguments) for call in wanted}, Earlier()
    calls, results = dict[str, ToolCall](), list[tuple[ToolCall, ToolMessage]]()
    for message in seen.messages[seen.turn_start :]:
        if isinstance(message, AssistantMessage):
            answered.update([_same(call, result.parts) for call, result in results])
            calls, results = {call.id: call for call in message.tool_calls if (call.name, call.arguments) in names}, []
        elif calls and isinstance(message, ToolMessage) and message.tool_call_id in calls:
            results.append((calls[message.tool_call_id], message))
    return answered


def _same(call: ToolCall, parts: tuple[ToolPart, ...]) -> tuple[str, str, tuple[ToolPart, ...]]:
    """What is the same of two calls whose answers differ in nothing but the notice."""
    return call.name, call.arguments, tuple([_without_notice(part) for part in parts])


def _without_notice(part: ToolPart) -> ToolPart:
    return replace(part, text=part.text.partition(REPEATED)[0]) if isinstance(part, Text) else part


def _with_notice(count: int, result: ToolResult) -> ToolResult:
    """A call made again with nothing new to show for it says so, where the model will read it."""
    notice = REPEATED + REPEATED_MORE.format(count=count)
    match result.parts:
        # Whoever shows it reads it as JSON; and what took up a skill or changed the state did change something.
        case _ if count == 1 or result.activates or result.changes or _is_shown(result):
            return result
        case (*others, Text() as last):
            return replace(result, parts=(*others, replace(last, text=last.text + notice)))
        case parts:
            return replace(result, parts=(*parts, Text(text=notice.lstrip())))


def _with_decision(log: Sequence[Entry], call: ToolCall, result: ToolResult) -> ToolResult:
    """The result of a call that a person agreed to tells the model what they changed of it, and what they said."""
    asked = [one for one in interrupts_of(view(log)) if one.call.id == call.id]
    decision = asked[-1].decision if asked else None
    if decision is None or not (decision.text or decision.arguments):
        return result
    match result.parts:
        case (Text() as only,) if shown := load_hinted(only.text):
            changes: dict[str, Json] = {CALLED_WITH: load_object(decision.arguments)} if decision.arguments else {}
            told = dump({**shown, **changes, **({PERSON_SAID: decision.text} if decision.text else {})}).decode()
            return replace(result, parts=(replace(only, text=told),))
        case (*others, Text() as last):
            return replace(result, parts=(*others, replace(last, text=last.text + _notes(decision))))
        case parts:
            return replace(result, parts=(*parts, Text(text=_notes(decision).lstrip())))


def _notes(decision: ConfirmDecided) -> str:
    changed = CHANGED.format(arguments=decision.arguments) if decision.arguments else ""
    return changed + (AGREED.format(words=decision.text) if decision.text else "")


def _is_shown(result: ToolResult) -> bool:
    return any(isinstance(part, Text) and load_hinted(part.text) for part in result.parts)
