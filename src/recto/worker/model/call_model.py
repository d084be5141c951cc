"""One call of the model: set a page, store what it is made of, send it, stream the reply, append it to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from recto.conversation.discard import discard_lost
from recto.conversation.events import Event, encode_event
from recto.conversation.json import dump
from recto.conversation.log import Entry, FoldStep, Interrupted
from recto.conversation.next_step import Finished, next_step
from recto.conversation.ui.compile_ui import ui_events
from recto.errors import ModelError, ModelRefused, PageTooLong, ReplyUnusable
from recto.models.deltas import cut_short
from recto.models.faults import delay
from recto.models.ports import CallStarted, Delta, ReplyEnd, TextDelta, Usage, Used
from recto.page.assemble import assemble
from recto.page.body import Page, Segment
from recto.page.facts import Facts
from recto.page.manifest import Manifest
from recto.page.prefix import AnsweredPage
from recto.page.prompt.quote import Quote
from recto.page.savings import Saving
from recto.page.text.tokens import Calibration
from recto.skills.directory import USE_SKILL
from recto.store.ports import CallEnd, CallStart, Purpose, RunChange
from recto.tracing.spans import TraceSpan
from recto.worker.account import report_usage, seconds_between
from recto.worker.context.quoted import quoted
from recto.worker.finish import farewell, fault_text
from recto.worker.log_writer import LogWriter
from recto.worker.model.call_savings import call_savings
from recto.worker.model.reply import Reply
from recto.worker.page_inputs import PageInputs
from recto.worker.run_spans import begin_model_call, note_reply, note_retry, note_words
from recto.worker.run_state import LoadedRun
from recto.worker.runtime import Runtime
from recto.worker.tools.calls_in_text import CallsInText
from recto.worker.tools.offered_tools import OfferedTools
from recto.worker.tools.tool_progress import ProgressReporter

LOGGER = logging.getLogger("recto.worker")
CUT_SHORT = "The reply was lost on the way and is asked for again."
NOT_USED = "The reply could not be used and is asked for again."


async def call_model(run: LoadedRun) -> None:
    """Ask the model. A page that would not fit is not sent: the next step is another then."""
    runtime, inputs, state = run.runtime, run.inputs, run.state
    if not inputs.is_quoted:
        inputs.take_quote(await _quoted(runtime, inputs, run.writer))
    facts, page, manifest = await inputs.next_page(run.writer.log, state.correction)
    may_compact = state.can_compact and not state.full
    state.note_full(is_full=may_compact and inputs.needs_summary(run.writer.log, manifest))
    if state.full:
        return
    runtime.telemetry.page.record(manifest, inputs.agent.name)
    started = runtime.clock()
    number = await begin_call(run, page, manifest, "reply")
    offered = OfferedTools(facts.tools, chooser=USE_SKILL)
    text = CallsInText(iter(runtime.new_id, None), offered, is_native=facts.tool_calling != "prompt")
    reply = _reply(runtime, inputs, run.writer)
    span = begin_model_call(run.span, inputs.model.name, number, "reply", manifest)
    call = _Call(
        number=number, facts=facts, page=page, manifest=manifest, reply=reply, text=text, started=started, span=span
    )
    with span:
        await _answer(run, call)


async def _answer(run: LoadedRun, call: _Call) -> None:
    try:
        await _listen(run, call)
        answered = AnsweredPage(
            run=run.state.row.id,
            number=call.number,
            page=call.page,
            manifest=replace(call.manifest),
            model=run.inputs.model.name,
        )
        call.savings = await call_savings(run, call.number, call.facts, answered)
    except ModelError as error:
        await _give_up(run, call, error)
    except asyncio.CancelledError:
        if run.state.broken_off:
            await _keep_what_was_said(run, call)
        raise
    else:
        note_words(call.span, run.inputs.asked, "".join(call.reply.words))
        run.runtime.telemetry.page.record_savings(run.inputs.agent.name, call.savings, run.runtime.prices.currency)
        run.inputs.note_answered(answered)
        await _append(run, call)


async def _quoted(runtime: Runtime, inputs: PageInputs, writer: LogWriter) -> Quote | None:
    progress = ProgressReporter(writer.mention, f"{inputs.row.response_id}-documents", runtime.clock)
    files = inputs.tool_files(writer.log) if inputs.files.refs else None
    if files and inputs.agent.file_input.mode == "always":
        # Documents may take long: that the run began, and what it was asked, is not held back for so long.
        await writer.settle()
    try:
        return await quoted(inputs.agent, files, runtime.counter, progress, runtime.quoting)
    finally:
        progress.end()


def _reply(runtime: Runtime, inputs: PageInputs, writer: LogWriter) -> Reply:
    # Only in a thread with files can an id be in the arguments; elsewhere readers get them as they are written.
    theirs = frozenset(name for name in inputs.client_tools if inputs.runner_of(name) != "server")
    return Reply(
        id=writer.message_id(),
        reasoning_id=runtime.new_id(),
        most_calls=inputs.agent.limits.calls,
        whole=theirs if inputs.files.refs else frozenset(),
        files_of=inputs.refs_in,
        runner_of=inputs.runner_of,
        call_id=writer.call_id,
    )


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


async def begin_call(run: LoadedRun, page: Page, manifest: Manifest, purpose: Purpose) -> int:
    """Store what a page is made of, under the fence, before it is sent. Returns the number of the call."""
    state = run.state
    before = state.page.segments if state.page else ()
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
        manifest=dump(manifest.stored()),
        started=run.runtime.clock(),
    )
    steps = _step_of(run, manifest, purpose)
    await run.writer.write(RunChange(call_start=call, entries=steps))
    for step in steps:
        run.runtime.telemetry.page.stepped(run.inputs.agent.name, step.cause)
    state.note_sent(page)
    run.inputs.note_sent(run.inputs.model.name)
    run.runtime.reached("call_begun")
    return call.number


async def _find_stored_segments(run: LoadedRun) -> Sequence[Segment]:
    """Return the segments of the last answered page of the thread if the store still has them.

    Cleaning deletes old calls and the segments that no call needs, but not while a run of the thread is open.
    """
    answered = run.inputs.answered
    if answered is None or not await run.runtime.store.has_call(answered.run, answered.number):
        return ()
    return answered.page.segments


def _step_of(run: LoadedRun, manifest: Manifest, purpose: Purpose) -> tuple[FoldStep, ...]:
    """What is folded from this page on (X2), in the write that stores the call: a crash leaves both or neither."""
    if manifest.step is None or purpose != "reply":
        return ()
    return (replace(manifest.step, id=run.runtime.new_id(), time=run.runtime.clock()),)


async def _listen(run: LoadedRun, call: _Call) -> None:
    # Closing the stream is what ends the call, so it is closed in any case.
    async with aclosing(_deltas(run.inputs, call)) as stream:
        async for delta in stream:
            # A count of tokens is not one.
            call.first_token = call.first_token or (None if isinstance(delta, Used) else run.runtime.clock())
            if isinstance(delta, CallStarted):
                await run.writer.know_call(delta.id)
            events = call.reply.take(delta)
            if events:
                # From now on readers know the id: another try goes by another.
                run.writer.note_said((call.reply.id,))
                await run.writer.say(events)
                run.runtime.reached("delta")
    if call.text.problem:
        raise ReplyUnusable(model=run.inputs.model.name, told=call.text.problem)


def _deltas(inputs: PageInputs, call: _Call) -> AsyncGenerator[Delta]:
    stream = cut_short(inputs.model.stream(call.page.body), inputs.agent.limits.reply_characters)
    if call.facts.tool_calling == "native":
        return stream
    return call.text.read(stream)


async def _append(run: LoadedRun, call: _Call) -> None:
    runtime, state, inputs = run.runtime, run.state, run.inputs
    reply, now = call.reply, runtime.clock()
    ended = reply.ended or ReplyEnd(finish="stop")
    # One that was cut short is paid for too, and no figures of it come any more.
    is_estimated = ended.usage is None and ended.finish == "length"
    usage = _estimate(runtime, call) if is_estimated else ended.usage
    spent = state.spend(inputs.model.name, usage, runtime.prices)
    first_token = seconds_between(call.started, call.first_token)
    report_usage(runtime.telemetry, inputs.model.name, spent, first_token)
    note_reply(call.span, ended.finish, spent, first_token)
    if ended.usage and ended.usage.input:
        counted = call.manifest.tokens_after
        inputs.calibrate(Calibration(digest=call.page.digest, counted=counted, reported=ended.usage.input))
    done = CallEnd(
        number=call.number,
        ended=now,
        first_token=call.first_token,
        finish=ended.finish,
        usage=dump({**spent.row(), **({"estimated": True} if is_estimated else {})}) if usage else None,
        price=spent.nanos,
        savings=call.savings,
    )
    change = RunChange(
        entries=reply.entries(now, runtime.new_id()),
        call_end=done,
        failures=0,
        too_long=0,
        usage=dump(state.account.row()),
    )
    state.succeed()
    events = [*reply.close(), *ui_events(reply.id, "".join(reply.words), inputs.agent.locale)]
    await _write_reply(run, change, events)
    runtime.reached("replied")


async def _write_reply(run: LoadedRun, change: RunChange, events: Sequence[Event]) -> None:
    # A reply that is the run's last ends it in the same write: one commit less, and nothing between the two.
    match next_step((*run.writer.log, *change.entries), run.snapshot()):
        case Finished(outcome=outcome) if run.inputs.agent.titles != "model":
            run.runtime.reached("ending")
            ending, farewell_event = farewell(run.state, outcome)
            await run.writer.write(replace(change, ending=ending), [*events, farewell_event])
        case _:
            await run.writer.write(change, events)


async def _give_up(run: LoadedRun, call: _Call, error: ModelError) -> None:
    """The call failed: what was said of it is taken back, and the run's row counts it."""
    state = run.state
    note_fault(run, error)
    call.span.fail(type(error).__name__)
    call.span.end()
    is_for_pictures = _is_for_pictures(call, error)
    if is_for_pictures:
        run.inputs.leave_pictures_out()
    state.fail(error, fault_text(error), is_for_pictures=is_for_pictures)
    change = replace(
        _unfinished(run, call, str(error)), failures=state.failures, too_long=state.too_long, error=state.problem
    )
    reason = NOT_USED if isinstance(error, ReplyUnusable) else CUT_SHORT
    await run.writer.write(change, _take_back(run.writer, call.reply, reason))
    if error.may_retry and not isinstance(error, ReplyUnusable) and state.failures < state.limits.failures:
        wait = delay(state.failures, error.retry_after, run.runtime.chance(), run.runtime.backoff)
        note_retry(run.span, type(error).__name__, state.failures, wait)
        await asyncio.sleep(min(wait, state.seconds_left))


def note_fault(run: LoadedRun, error: ModelError) -> None:
    """Count a model call that failed, and say why where operators read it: users read less."""
    LOGGER.warning("run %s: %s", run.state.row.id, error, extra={"run": run.state.row.id})
    run.runtime.telemetry.failed(run.inputs.model.name, error)


def _is_for_pictures(call: _Call, error: ModelError) -> bool:
    """Whether the page may be taken without the pictures in it: one of them may be what the provider refuses."""
    match error:
        case ModelRefused(may_be_the_page=True):
            return _without_pictures(call).digest != call.page.digest
        case PageTooLong():
            # A summary does not make a page smaller that is mostly pictures.
            return 2 * len(_without_pictures(call).body) < len(call.page.body)
        case _:
            return False


def _without_pictures(call: _Call) -> Page:
    return assemble(replace(call.facts, pictures={}))[0]


def _take_back(writer: LogWriter, reply: Reply, reason: str) -> tuple[Event, ...]:
    """What readers need to hear of a reply that does not count."""
    bodies = [body for event in reply.announced for body in encode_event(event)]
    return discard_lost(bodies, logged=(), reason=reason, upto=writer.last_id)


async def _keep_what_was_said(run: LoadedRun, call: _Call) -> None:
    """The run is broken off: the partial answer stays, marked. A call that was being written is never run."""
    reply, runtime = call.reply, run.runtime
    if any(entry.id == reply.id for entry in run.writer.log):
        return
    now, entries = runtime.clock(), list[Entry]()
    rest = call.text.rest()
    events = reply.take(TextDelta(text=rest)) if rest else []
    if not reply.is_empty:
        marker = Interrupted(id=runtime.new_id(), time=now, message=reply.id, reason="broken off")
        entries = [*reply.entries(now, runtime.new_id()), marker]
    runtime.telemetry.broken_off(run.inputs.model.name)
    await run.writer.write(replace(_unfinished(run, call, "broken off"), entries=entries), [*events, *reply.close()])


def _unfinished(run: LoadedRun, call: _Call, error: str) -> RunChange:
    """A call that gave no whole reply. What was said is paid for, by the provider's figures or our own count."""
    ended = CallEnd(number=call.number, ended=run.runtime.clock(), first_token=call.first_token, error=error)
    if call.first_token is None and call.reply.used is None:
        return RunChange(call_end=ended)
    spent = run.state.spend(run.inputs.model.name, _estimate(run.runtime, call), run.runtime.prices)
    ended = replace(ended, usage=dump({**spent.row(), "estimated": True}), price=spent.nanos)
    return RunChange(call_end=ended, usage=dump(run.state.account.row()))


def _estimate(runtime: Runtime, call: _Call) -> Usage:
    written = runtime.counter.count((call.reply.text,))[0]
    reported = call.reply.used or Usage(input=call.manifest.tokens.tokens)
    return replace(reported, output=max(reported.output, written))
