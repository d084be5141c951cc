"""One model call: assemble a page, store it, send it, stream the reply to readers, and append the reply to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from recto.conversation.events import Event, discard_lost, encode_event
from recto.conversation.json import dump
from recto.conversation.log import Entry, FoldStep, Interrupted, view
from recto.conversation.message_files import refs_in
from recto.conversation.next_step import Finished, next_step
from recto.conversation.ui.compile_ui import ui_events
from recto.errors import ModelError, ModelRefused, PageTooLong, ReplyUnusable
from recto.models.deltas import cut_short
from recto.models.faults import delay
from recto.models.ports import CallStarted, ReplyEnd, ReplyUsage, TextDelta, Usage
from recto.page.assemble import assemble, find_cache_state
from recto.page.body import Page, Segment
from recto.page.facts import Facts
from recto.page.fold.fold_by_cost import FIRST_CALL, GAP
from recto.page.manifest import Manifest
from recto.page.prefix import AnsweredPage
from recto.page.prompt.quote import Quote
from recto.page.savings import Saving, savings_of
from recto.page.text.tokens import Calibration
from recto.skills.directory import USE_SKILL
from recto.store.ports import CallEnd, CallStart, Purpose, RunChange
from recto.tracing.spans import TraceSpan
from recto.worker.account import read_answered_page, report_usage, seconds_between
from recto.worker.context.page_facts import needs_summary, next_page
from recto.worker.context.prompt_context import build_quote
from recto.worker.finish import build_ending, describe_fault
from recto.worker.model.reply import Reply
from recto.worker.run_spans import begin_model_call, note_reply, note_retry, note_words
from recto.worker.run_state import LoadedRun, snapshot
from recto.worker.tools.calls_in_text import CallsInText
from recto.worker.tools.offered_tools import OfferedTools
from recto.worker.tools.tool_context import ProgressReporter

LOGGER = logging.getLogger("recto.worker")
CUT_SHORT = "The connection to the model broke; the reply starts again."
NOT_USED = "The reply was unusable; it starts again."


@dataclass(kw_only=True)
class _Call:
    number: int
    facts: Facts
    page: Page
    manifest: Manifest
    reply: Reply
    text: CallsInText
    started: datetime
    span: TraceSpan
    first_token: datetime | None = None
    savings: tuple[Saving, ...] = ()


async def call_model(run: LoadedRun) -> None:
    """Send the next page and append the reply to the log.

    If the page has no room, send nothing; the next step compacts.
    """
    runtime, inputs, state = run.runtime, run.inputs, run.state
    if not inputs.pages.has_quote:
        inputs.pages.use_quote(await _quote(run))
    facts, page, manifest = await next_page(inputs, run.writer.log, state.correction)
    may_compact = state.can_compact and not state.is_page_full
    state.note_full(is_full=may_compact and needs_summary(inputs, run.writer.log, manifest))
    if state.is_page_full:
        return
    runtime.telemetry.page.record_page(manifest, inputs.agent.name)
    started = runtime.clock()
    number = await begin_call(run, page, manifest, "reply")
    tools = OfferedTools(facts.tools, chooser=USE_SKILL)
    text = CallsInText(iter(runtime.new_id, None), tools, is_native=facts.tool_calling != "prompt")
    span = begin_model_call(run.span, inputs.model.name, number, "reply", manifest)
    call = _Call(
        number=number,
        facts=facts,
        page=page,
        manifest=manifest,
        reply=_reply(run),
        text=text,
        started=started,
        span=span,
    )
    with span:
        await _answer(run, call)


async def _quote(run: LoadedRun) -> Quote | None:
    inputs, runtime, writer = run.inputs, run.runtime, run.writer
    progress = ProgressReporter(writer.emit_soon, f"{inputs.row.response_id}-documents", runtime.clock)
    files = inputs.open_tool_files(writer.log) if inputs.pages.files.refs else None
    if files and inputs.agent.file_input.mode == "always":
        # Parsing documents may take long, so store the input and the start of the run first.
        await writer.flush()
    try:
        models = runtime.models
        return await build_quote(inputs.agent, files, models.counter, progress, models.quote_gate)
    finally:
        progress.end()


def _reply(run: LoadedRun) -> Reply:
    inputs, refs = run.inputs, run.inputs.pages.files.refs
    client_tools = frozenset(name for name in inputs.client_tools if inputs.runner_of(name) != "server")
    return Reply(
        id=run.writer.message_id(),
        reasoning_id=run.runtime.new_id(),
        max_calls=inputs.agent.limits.calls,
        # Without files in the thread, arguments contain no file ids, so they need no buffering.
        buffered_tools=client_tools if refs else frozenset(),
        files_of=lambda tool, arguments: refs_in(tool, arguments, refs.values()),
        runner_of=inputs.runner_of,
        call_id=run.writer.call_id,
    )


async def _answer(run: LoadedRun, call: _Call) -> None:
    try:
        await _stream_reply(run, call)
        answer = AnsweredPage(
            run=run.state.row.id,
            number=call.number,
            page=call.page,
            manifest=replace(call.manifest),
            model=run.inputs.model.name,
        )
        # After the first call or a long gap, the provider has no cached prefix.
        is_cold = find_cache_state(call.facts, view(call.facts.log)).cold in (FIRST_CALL, GAP)
        if is_cold:
            before = None
        elif last := run.inputs.pages.last_answer:
            before = last.sent_page
        else:
            before = await read_answered_page(run.runtime.store, run.state.row.id, call.number)
        call.savings = savings_of(before, answer.sent_page, call.facts.cache_prices)
    except ModelError as error:
        await _give_up(run, call, error)
    except asyncio.CancelledError:
        if run.state.is_stopping:
            await _keep_partial_reply(run, call)
        raise
    else:
        note_words(call.span, run.inputs.request, "".join(call.reply.words))
        currency = run.runtime.models.prices.currency
        run.runtime.telemetry.page.record_savings(run.inputs.agent.name, call.savings, currency)
        run.inputs.pages.note_answer(answer)
        await _append(run, call)


async def begin_call(run: LoadedRun, page: Page, manifest: Manifest, purpose: Purpose) -> int:
    """Store the segments of a page before it is sent, and return the number of the call."""
    state, runtime, pages = run.state, run.runtime, run.inputs.pages
    before = pages.last_page.segments if pages.last_page else ()
    shared = 0
    for old, new in zip(before, page.segments, strict=False):
        if old.sha256 != new.sha256:
            break
        shared += 1
    stored_hashes = {segment.sha256 for segment in before or await _find_stored_segments(run)}
    call = CallStart(
        number=state.count_call(),
        purpose=purpose,
        model=run.inputs.model.name,
        digest=page.digest,
        shared=shared,
        hashes=b"".join([segment.sha256 for segment in page.segments[shared:]]),
        segments=[segment for segment in page.segments[shared:] if segment.sha256 not in stored_hashes],
        manifest=dump(manifest.to_stored()),
        started=runtime.clock(),
    )
    steps: tuple[FoldStep, ...] = ()
    if manifest.step and purpose == "reply":
        # Store the fold step (X2) in the same write as the call: after a crash, the store has both or neither.
        steps = (replace(manifest.step, id=runtime.new_id(), time=runtime.clock()),)
    await run.writer.write(RunChange(call_start=call, entries=steps))
    for step in steps:
        runtime.telemetry.page.record_step(run.inputs.agent.name, step.cause)
    pages.note_sent(run.inputs.model.name, page)
    runtime.checkpoint("call_begun")
    return call.number


async def _find_stored_segments(run: LoadedRun) -> Sequence[Segment]:
    """Return the segments of the last answered page of the thread if the store still has them.

    Cleanup deletes old calls and unused segments, but not while a run of the thread is open.
    """
    answer = run.inputs.pages.last_answer
    if answer is None or not await run.runtime.store.calls.exists(answer.run, answer.number):
        return ()
    return answer.page.segments


async def _stream_reply(run: LoadedRun, call: _Call) -> None:
    writer, reply = run.writer, call.reply
    deltas = cut_short(run.inputs.model.stream(call.page.body), run.inputs.agent.limits.reply_characters)
    if call.facts.tool_calling != "native":
        deltas = call.text.read(deltas)
    # Closing the stream ends the call at the provider.
    async with aclosing(deltas) as stream:
        async for delta in stream:
            # A token count does not count as the first token.
            call.first_token = call.first_token or (None if isinstance(delta, ReplyUsage) else run.runtime.clock())
            if isinstance(delta, CallStarted):
                await writer.check_call_id(delta.id)
            events = reply.add(delta)
            if events:
                # Readers have seen this id, so a retry needs another one.
                writer.reserve_ids((reply.id,))
                await writer.emit(events)
                run.runtime.checkpoint("delta")
    if call.text.problem:
        raise ReplyUnusable(model=run.inputs.model.name, correction=call.text.problem)


async def _append(run: LoadedRun, call: _Call) -> None:
    runtime, state, inputs, reply = run.runtime, run.state, run.inputs, call.reply
    now, end = runtime.clock(), reply.end or ReplyEnd(finish="stop")
    # If we cut the reply at our own limit, the provider charges for it but sends no usage.
    is_estimated = end.usage is None and end.finish == "length"
    usage = _estimate(run, call) if is_estimated else end.usage
    spending = state.spend(inputs.model.name, usage, runtime.models.prices)
    first_token = seconds_between(call.started, call.first_token)
    report_usage(runtime.telemetry, inputs.model.name, spending, first_token)
    note_reply(call.span, end.finish, spending, first_token)
    if end.usage and end.usage.input:
        own_count, reported_count = call.manifest.tokens_after, end.usage.input
        calibration = Calibration(digest=call.page.digest, own_count=own_count, reported_count=reported_count)
        inputs.pages.calibrate(calibration)
    call_end = CallEnd(
        number=call.number,
        ended=now,
        first_token=call.first_token,
        finish=end.finish,
        usage=dump({**spending.row(), **({"estimated": True} if is_estimated else {})}) if usage else None,
        price=spending.nanos,
        savings=call.savings,
    )
    change = RunChange(
        entries=reply.entries(now, runtime.new_id()),
        call_end=call_end,
        failures=0,
        too_long=0,
        usage=dump(state.account.row()),
    )
    state.succeed()
    events = [*reply.close(), *ui_events(reply.id, "".join(reply.words), inputs.agent.locale)]
    # End the run in the same write as its last reply, which saves a commit.
    match next_step((*run.writer.log, *change.entries), snapshot(state, inputs)):
        case Finished(outcome=outcome) if inputs.agent.titles != "model":
            runtime.checkpoint("ending")
            ending, last_event = build_ending(state, outcome)
            await run.writer.write(replace(change, ending=ending), [*events, last_event])
        case _:
            await run.writer.write(change, events)
    runtime.checkpoint("replied")


async def _give_up(run: LoadedRun, call: _Call, error: ModelError) -> None:
    """Count a failed call, discard its partial reply, and wait before a retry."""
    state, writer, models = run.state, run.writer, run.runtime.models
    note_fault(run, error)
    call.span.fail(type(error).__name__)
    call.span.end()
    is_for_pictures = _is_for_pictures(call, error)
    if is_for_pictures:
        run.inputs.pages.omit_pictures()
    state.fail(error, describe_fault(error), is_for_pictures=is_for_pictures)
    change = replace(
        _failed_call(run, call, str(error)), failures=state.failures, too_long=state.too_long, error=state.problem
    )
    reason = NOT_USED if isinstance(error, ReplyUnusable) else CUT_SHORT
    sent_events = [body for event in call.reply.announced_events for body in encode_event(event)]
    events: tuple[Event, ...] = discard_lost(sent_events, logged=(), reason=reason, upto=writer.last_id)
    await writer.write(change, events)
    if error.may_retry and not isinstance(error, ReplyUnusable) and state.failures < state.limits.failures:
        wait = delay(state.failures, error.retry_after, models.random(), models.backoff)
        note_retry(run.span, type(error).__name__, state.failures, wait)
        await asyncio.sleep(min(wait, state.seconds_left))


def note_fault(run: LoadedRun, error: ModelError) -> None:
    """Count and log a failed model call. The log contains details that users must not see."""
    LOGGER.warning("run %s: %s", run.state.row.id, error, extra={"run": run.state.row.id})
    run.runtime.telemetry.record_failed_call(run.inputs.model.name, error)


def _is_for_pictures(call: _Call, error: ModelError) -> bool:
    """Return True if the provider may accept the page without its pictures."""
    match error:
        case ModelRefused(may_be_the_page=True):
            return _without_pictures(call).digest != call.page.digest
        case PageTooLong():
            # A summary would not shorten a page that consists mostly of pictures.
            return 2 * len(_without_pictures(call).body) < len(call.page.body)
        case _:
            return False


def _without_pictures(call: _Call) -> Page:
    return assemble(replace(call.facts, pictures={}))[0]


async def _keep_partial_reply(run: LoadedRun, call: _Call) -> None:
    """Store the partial reply of a stopped run, with a marker. Unfinished tool calls never run."""
    reply, runtime = call.reply, run.runtime
    if any(entry.id == reply.id for entry in run.writer.log):
        return
    now, entries = runtime.clock(), list[Entry]()
    rest = call.text.rest()
    events = reply.add(TextDelta(text=rest)) if rest else []
    if not reply.is_empty:
        marker = Interrupted(id=runtime.new_id(), time=now, message=reply.id, reason="broken off")
        entries = [*reply.entries(now, runtime.new_id()), marker]
    runtime.telemetry.record_stopped_call(run.inputs.model.name)
    await run.writer.write(replace(_failed_call(run, call, "broken off"), entries=entries), [*events, *reply.close()])


def _failed_call(run: LoadedRun, call: _Call, error: str) -> RunChange:
    """Return the end of a call without a complete reply. Partial replies cost tokens too."""
    call_end = CallEnd(number=call.number, ended=run.runtime.clock(), first_token=call.first_token, error=error)
    if call.first_token is None and call.reply.usage is None:
        return RunChange(call_end=call_end)
    spending = run.state.spend(run.inputs.model.name, _estimate(run, call), run.runtime.models.prices)
    call_end = replace(call_end, usage=dump({**spending.row(), "estimated": True}), price=spending.nanos)
    return RunChange(call_end=call_end, usage=dump(run.state.account.row()))


def _estimate(run: LoadedRun, call: _Call) -> Usage:
    """Return the usage of a partial reply, from the provider's figures and our own count."""
    output = run.runtime.models.counter.count((call.reply.text,))[0]
    usage = call.reply.usage or Usage(input=call.manifest.tokens.tokens)
    return replace(usage, output=max(usage.output, output))
