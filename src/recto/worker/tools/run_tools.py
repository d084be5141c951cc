"""Tool calls of a reply.

The log records the start of each call before it runs, and its result as soon as it ends. Calls run concurrently unless
one of them uses what another one changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from recto.conversation.events import Event, ToolCallResult
from recto.conversation.input.input_entries import EXPIRED
from recto.conversation.interrupts import DENIED, UNANSWERED, denial_text, interrupts_of
from recto.conversation.json import Json, dump, load_object
from recto.conversation.log import Entry, SkillChanged, ToolStarted, View, view
from recto.conversation.messages import AssistantMessage, Text, ToolCall, ToolMessage, ToolPart
from recto.conversation.next_step import INVALID_ARGUMENTS, RunTools, WaitForClient
from recto.conversation.ui.compile_ui import load_hinted, ui_events
from recto.errors import RectoError
from recto.page.wire.formats import encode
from recto.store.ports import RunChange
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import Mark
from recto.tools.ports import ToolResult, discard_progress
from recto.tools.registry import Registry
from recto.tools.workspace.snapshots import SnapshotTurn
from recto.tools.workspace.workspaces import Workspace, lock_of, mark_busy
from recto.worker.run_state import LoadedRun
from recto.worker.runtime import Runtime
from recto.worker.tools.shared_state import apply_state_changes
from recto.worker.tools.tool_context import ProgressReporter, execute, find_tools_of_reply, replace_file_ids

LOGGER = logging.getLogger("recto.worker")
INTERRUPTED, CUT_OFF, TOO_MANY = "interrupted", "cut_off", "too_many_calls"
INTERRUPTED_CALL = (
    "{name} was started and then interrupted; whether it finished is not known. "
    "It was not started again. Look at what is there before you do."
)
HALF = "The call of {name} was cut off while you were writing it, so it was not run. Write it again, shorter."
TOO_MANY_CALLS = (
    "At most {most} calls of one reply are run. This one and those after it were not: make them again if you still "
    "need them, fewer at a time."
)
STOPPED = "{name} was stopped because the run was ended. It may have done part of its work."
# Notes on a person's changes and comments, added to the result: as text, or under these names in a JSON result.
CHANGED = "\n\n(A person changed the arguments before they agreed. It was called with: {arguments})"
APPROVAL_WORDS = "\n\n(The person who agreed said: {words})"
CALLED_WITH, PERSON_SAID = "called_with", "person_said"
REPEATED = "\n\n(You made this very call with this very result "
REPEATED_MORE = (
    "{count} times in this turn. Making it again will change nothing: do something else, or answer with what you have.)"
)
# Number of identical answers to identical calls in a turn, by name, arguments, and the answer without the notice.
Repeats = Counter[tuple[str, str, tuple[ToolPart, ...]]]


async def run_tools(run: LoadedRun, step: RunTools) -> None:
    """Answer the calls that cannot run, then run the others and wait for all of them."""
    limit_text = TOO_MANY_CALLS.format(most=run.state.limits.calls)
    answers = [
        *[(call, _failure(call, INTERRUPTED_CALL, INTERRUPTED)) for call in step.interrupted],
        *[(call, _failure(call, HALF, CUT_OFF)) for call in step.cut_off],
        *[(call, ToolResult(parts=(Text(text=limit_text),), error=TOO_MANY)) for call in step.too_many],
        *[(call, _failure(call, UNANSWERED, EXPIRED)) for call in step.expired],
    ]
    for denied in step.denied:
        text = denial_text(denied.call.name, denied.words)
        answers.append((denied.call, ToolResult(parts=(Text(text=text),), error=DENIED)))
    tools = find_tools_of_reply(run.inputs, run.writer.log)
    async with _snapshot_files(run, step.start, tools):
        await _store_starts(run, step.start, answers)
        tasks = _start_tasks(run, step.start, tools)
        try:
            await asyncio.gather(*tasks)
        except asyncio.CancelledError:
            # All tasks have ended or were abandoned, so no result is stored after this point.
            if run.state.is_stopping:
                # Tell the model which calls did not end before the run was stopped.
                calls = step.start
                answered_ids = {entry.tool_call_id for entry in run.writer.log if isinstance(entry, ToolMessage)}
                open_calls = [call for call in calls if call.id not in answered_ids]
                messages = [_message(run.runtime, call, _failure(call, STOPPED, INTERRUPTED)) for call in open_calls]
                await run.writer.write(RunChange(entries=messages), _events_of(messages, run.inputs.agent.locale))
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _snapshot_files(run: LoadedRun, calls: Sequence[ToolCall], tools: Registry) -> AsyncGenerator[None]:
    """Take a snapshot of the workspace before calls that may change it, and block rollbacks while the calls run."""
    workspace = run.inputs.workspace
    if workspace is None or not any(call.name in tools and tools[call.name].mark.changes for call in calls):
        yield
        return
    # Mark the folder as busy before the snapshot: later rollbacks see the mark, and the lock below waits for earlier
    # ones.
    with mark_busy(workspace.folder):
        await _take_snapshot(run, workspace)
        yield


async def _take_snapshot(run: LoadedRun, workspace: Workspace) -> None:
    """Take one snapshot per turn. Only log a failure, because the tools can work without a snapshot."""
    snapshots, thread, log_view = run.runtime.tools.snapshots, run.state.row.thread, view(run.writer.log)
    if snapshots is None or log_view.turn_start >= len(log_view.messages):
        return
    user = log_view.messages[log_view.turn_start]
    try:
        async with lock_of(workspace.folder):
            if not await run_in_thread(partial(snapshots.has_turn, thread, user.id), name="snapshot"):
                turn = SnapshotTurn(message=user.id, admission_time=user.time or run.runtime.clock())
                await run_in_thread(partial(snapshots.save_turn, workspace, thread, turn), name="snapshot")
    # Catch all errors, such as a full disk or an unreadable folder.
    except Exception as error:
        has_details = not isinstance(error, RectoError)
        LOGGER.warning("No snapshot of the files of thread %s before a turn: %s", thread, error, exc_info=has_details)


async def send_back_bad_calls(run: LoadedRun, step: WaitForClient) -> bool:
    """Answer the calls whose arguments do not match the schema. Return True if there are any.

    The model gets the errors and repeats these calls, so neither clients nor people see them.
    """
    runtime, inputs = run.runtime, run.inputs
    tools = find_tools_of_reply(inputs, run.writer.log) if step.confirm else Registry()
    schemas = {tool.name: tool.parameters for tool in inputs.request.tools}
    urls = inputs.pages.files.fresh_urls(runtime.clock())
    # Check the arguments as tools receive them, with urls in place of file ids (F8). A call of an earlier run's client
    # tool was checked when it was made.
    checks = [(call, replace_file_ids(call, urls), schemas[call.name]) for call in step.calls if call.name in schemas]
    for call in [call for call in step.confirm if call.name in tools]:
        tool = tools[call.name]
        checks.append((call, replace_file_ids(call, urls) if tool.mark.external else call, tool.offer.parameters))
    problems = await runtime.tools.schemas.check([(final.arguments, schema) for _, final, schema in checks])
    messages = [
        _message(runtime, call, ToolResult(parts=(Text(text=problem),), error=INVALID_ARGUMENTS))
        for (call, _, _), problem in zip(checks, problems, strict=True)
        if problem is not None
    ]
    # Do not ask a person about an unknown tool.
    unknown = [call for call in step.confirm if call.name not in tools]
    messages += [_message(runtime, call, await execute(run, call, tools, discard_progress)) for call in unknown]
    if messages:
        await run.writer.write(RunChange(entries=messages), _events_of(messages, inputs.agent.locale))
    return bool(messages)


def _failure(call: ToolCall, text: str, error: str) -> ToolResult:
    return ToolResult(parts=(Text(text=text.format(name=call.name)),), error=error)


async def _store_starts(
    run: LoadedRun, calls: Sequence[ToolCall], answers: Sequence[tuple[ToolCall, ToolResult]]
) -> None:
    runtime, reply = run.runtime, view(run.writer.log).reply
    now, message = runtime.clock(), reply.id if reply else ""
    starts = [ToolStarted(id=runtime.new_id(), time=now, message=message, call=call.id) for call in calls]
    results = [_message(runtime, call, result) for call, result in answers]
    entries: list[Entry] = [*results, *starts]
    await run.writer.write(RunChange(entries=entries), _events_of(results, run.inputs.agent.locale))
    runtime.checkpoint("tools_started")


def _start_tasks(run: LoadedRun, calls: Sequence[ToolCall], tools: Registry) -> list[asyncio.Task[None]]:
    """Start a task for each call. A task first waits for the earlier calls that its tool must follow."""
    repeats = _count_repeats(view(run.writer.log), calls)
    tasks = list[asyncio.Task[None]]()
    marks = [tools[call.name].mark if call.name in tools else Mark() for call in calls]
    for place, call in enumerate(calls):
        before = [task for task, mark in zip(tasks, marks, strict=False) if mark.precedes(marks[place])]
        tasks.append(asyncio.create_task(_run_call(run, call, tools, repeats, before)))
    return tasks


async def _run_call(
    run: LoadedRun, call: ToolCall, tools: Registry, repeats: Repeats, before: Sequence[asyncio.Task[None]]
) -> None:
    if before:
        await asyncio.wait(before)
    runtime = run.runtime
    # All workers use the same id, so that the activity of a later worker replaces this one.
    progress = ProgressReporter(run.writer.emit_soon, f"{call.id}-progress", runtime.clock)
    try:
        result = await execute(run, call, tools, progress)
    finally:
        progress.end()
    runtime.checkpoint("tool_acted")
    result = _with_decision(run.writer.log, call, result)
    if result.changes:
        # Apply state changes one call at a time, because each call changes the state that the previous one left.
        async with run.state_lock:
            await _store_result(run, call, repeats, result)
    else:
        await _store_result(run, call, repeats, result)
    runtime.checkpoint("tool_ended")


async def _store_result(run: LoadedRun, call: ToolCall, repeats: Repeats, result: ToolResult) -> None:
    """Store a result in one write with its skill and its state changes, so that a crash leaves all of them or none."""
    runtime, update = run.runtime, apply_state_changes(run.runtime, run.writer.log, result)
    result = update.result
    message = _message(runtime, call, _with_notice(repeats[_call_key(call, result.parts)] + 1, result))
    skill: tuple[SkillChanged, ...] = ()
    if new := result.activates:
        id, now = runtime.new_id(), runtime.clock()
        skill = (SkillChanged(id=id, time=now, skill=new.skill, scenario=new.scenario),)
    events = _events_of((message,), run.inputs.agent.locale)
    await run.writer.write(RunChange(entries=(message, *skill, *update.entries)), [*events, *update.events])


def _message(runtime: Runtime, call: ToolCall, result: ToolResult) -> ToolMessage:
    return ToolMessage(
        id=runtime.new_id(), time=runtime.clock(), tool_call_id=call.id, parts=result.parts, error=result.error
    )


def _events_of(messages: Sequence[ToolMessage], locale: str) -> list[Event]:
    events = list[Event]()
    for message in messages:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        content: Json = "\n".join(texts)
        if len(texts) != len(message.parts):
            encoded = encode((message,), "ag-ui")[0]
            content = encoded["content"] if isinstance(encoded, dict) else ""
        events.append(ToolCallResult(message=message.id, call=message.tool_call_id, content=content))
        events += ui_events(message.id, content, locale)
    return events


def _count_repeats(log_view: View, new: Sequence[ToolCall]) -> Repeats:
    """Count earlier answers in this turn to calls that are equal to the new ones. Skip answers of the current reply."""
    keys, repeats = {(call.name, call.arguments) for call in new}, Repeats()
    calls, results = dict[str, ToolCall](), list[tuple[ToolCall, ToolMessage]]()
    for message in log_view.messages[log_view.turn_start :]:
        if isinstance(message, AssistantMessage):
            repeats.update([_call_key(call, result.parts) for call, result in results])
            calls, results = {call.id: call for call in message.tool_calls if (call.name, call.arguments) in keys}, []
        elif calls and isinstance(message, ToolMessage) and message.tool_call_id in calls:
            results.append((calls[message.tool_call_id], message))
    return repeats


def _call_key(call: ToolCall, parts: tuple[ToolPart, ...]) -> tuple[str, str, tuple[ToolPart, ...]]:
    plain = [replace(part, text=part.text.partition(REPEATED)[0]) if isinstance(part, Text) else part for part in parts]
    return call.name, call.arguments, tuple(plain)


def _with_notice(count: int, result: ToolResult) -> ToolResult:
    """Return the result of a repeated call with a notice for the model."""
    has_hints = any(isinstance(part, Text) and load_hinted(part.text) for part in result.parts)
    # Add no notice to a result with hints, which clients parse as JSON, or if the call changed the skill or the state.
    if count == 1 or result.activates or result.changes or has_hints:
        return result
    return _with_text(result, REPEATED + REPEATED_MORE.format(count=count))


def _with_decision(log: Sequence[Entry], call: ToolCall, result: ToolResult) -> ToolResult:
    """Return the result of a confirmed call, with the person's changes and comments for the model."""
    interrupts = [one for one in interrupts_of(view(log)) if one.call.id == call.id]
    decision = interrupts[-1].decision if interrupts else None
    if decision is None or not (decision.text or decision.arguments):
        return result
    match result.parts:
        case (Text() as only,) if fields := load_hinted(only.text):
            changes: dict[str, Json] = {CALLED_WITH: load_object(decision.arguments)} if decision.arguments else {}
            text = dump({**fields, **changes, **({PERSON_SAID: decision.text} if decision.text else {})}).decode()
            return replace(result, parts=(replace(only, text=text),))
        case _:
            notes = CHANGED.format(arguments=decision.arguments) if decision.arguments else ""
            return _with_text(result, notes + (APPROVAL_WORDS.format(words=decision.text) if decision.text else ""))


def _with_text(result: ToolResult, text: str) -> ToolResult:
    match result.parts:
        case (*others, Text() as last):
            return replace(result, parts=(*others, replace(last, text=last.text + text)))
        case parts:
            return replace(result, parts=(*parts, Text(text=text.lstrip())))
