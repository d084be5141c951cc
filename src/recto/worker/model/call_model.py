"""One call of the model: set a page, store what it is made of, send it, stream the reply, append it to the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from recto.conversation.events import Event, discard_lost, encode_event
from recto.conversation.json import dump
from recto.conversation.log import Entry, Interrupted
from recto.conversation.next_step import Finished, next_step
from recto.conversation.ui.compile_ui import ui_events
from recto.errors import ModelError, ModelRefused, PageTooLong
from recto.models.backoff import delay
from recto.models.deltas import cut_short
from recto.models.ports import Delta, ReplyEnd, TextDelta, Usage, Used
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts
from recto.page.manifest import Manifest
from recto.page.prompt.quote import Quote
from recto.page.steps.compact import is_full
from recto.page.text.tokens import Calibration
from recto.store.ports import CallBegun, CallEnded, Purpose, RunChange
from recto.worker.account import report_usage, seconds_between
from recto.worker.context.quoted import quoted
from recto.worker.finish import farewell, fault_text
from recto.worker.model.reply import Reply
from recto.worker.run_state import RunState
from recto.worker.tools.calls_in_text import CallsInText
from recto.worker.tools.tool_progress import ProgressReporter

CUT_SHORT = "The reply was lost on the way and is asked for again."


async def call_model(state: RunState) -> None:
    """Ask the model. A page that would not fit is not sent: the next step is another then."""
    if not state.is_quoted:
        state.quote, state.is_quoted = await _quoted(state), True
    context = await state.load_prompt_context()
    facts = state.facts(context)
    page, manifest = assemble(facts)
    # A skill that the agent has no more is in the log, but not in the page.
    manifest = replace(manifest, skill=context.skill.name if context.skill else None)
    room = replace(state.agent.compact, window=state.agent.window or state.model.window)
    if state.can_compact and not state.full and is_full(manifest.tokens.tokens, room):
        state.full = True
        return
    state.full = False
    state.runtime.telemetry.page.record(manifest)
    started = state.runtime.clock()
    number = await begin_call(state, page, manifest, "reply")
    # Only in a thread with files can an id be in the arguments; elsewhere readers get them as they are written.
    theirs = frozenset(name for name in state.client_tools if state.runner_of(name) != "server")
    reply = Reply(
        id=state.message_id(),
        reasoning_id=state.runtime.new_id(),
        most_calls=state.agent.limits.calls,
        whole=theirs if state.files.refs else frozenset(),
        files_of=state.refs_in,
        runner_of=state.runner_of,
        call_id=state.call_id,
    )
    text = CallsInText(iter(state.runtime.new_id, None))
    call = _Call(number=number, facts=facts, page=page, manifest=manifest, reply=reply, text=text, started=started)
    try:
        await _listen(state, call)
    except ModelError as error:
        await _give_up(state, call, error)
    except asyncio.CancelledError:
        if state.broken_off:
            await _keep_what_was_said(state, call)
        raise
    else:
        await _append(state, call)


async def _quoted(state: RunState) -> Quote | None:
    progress = ProgressReporter(state.recorder.mention, f"{state.run.response_id}-documents", state.runtime.clock)
    files = state.tool_files() if state.files.refs else None
    if files and state.agent.file_input.mode == "always":
        # Documents may take long: that the run began, and what it was asked, is not held back for so long.
        await state.settle()
    try:
        return await quoted(state.agent, files, state.runtime.counter, progress, state.runtime.quoting)
    finally:
        progress.end()


@dataclass(kw_only=True)
class _Call:
    number: int
    facts: Facts
    page: Page
    manifest: Manifest
    reply: Reply
    text: CallsInText
    started: datetime
    first_token: datetime | None = None


async def begin_call(state: RunState, page: Page, manifest: Manifest, purpose: Purpose) -> int:
    """Store what a page is made of, under the fence, before it is sent. Returns the number of the call."""
    before = state.page.segments if state.page else ()
    shared = 0
    for old, new in zip(before, page.segments, strict=False):
        if old.sha256 != new.sha256:
            break
        shared += 1
    known = {segment.sha256 for segment in before}
    state.calls += 1
    call = CallBegun(
        number=state.calls,
        purpose=purpose,
        model=state.model.name,
        digest=page.digest,
        shared=shared,
        hashes=b"".join([segment.sha256 for segment in page.segments[shared:]]),
        segments=[segment for segment in page.segments[shared:] if segment.sha256 not in known],
        manifest=dump({"parts": manifest.rows(), "tokens": manifest.tokens.tokens, "skill": manifest.skill}),
        started=state.runtime.clock(),
    )
    await state.write(RunChange(call=call))
    state.page = page
    state.runtime.reached("call_begun")
    return state.calls


async def _listen(state: RunState, call: _Call) -> None:
    # Closing the stream is what ends the call, so it is closed in any case.
    async with aclosing(_deltas(state, call)) as stream:
        async for delta in stream:
            call.first_token = call.first_token or _time_of(state, delta)
            events = call.reply.take(delta)
            if events:
                # From now on readers know the id: another try goes by another.
                state.said.add(call.reply.id)
                await state.recorder.say(events)
                state.runtime.reached("delta")


def _time_of(state: RunState, delta: Delta) -> datetime | None:
    # A count of tokens is not one.
    return None if isinstance(delta, Used) else state.runtime.clock()


def _deltas(state: RunState, call: _Call) -> AsyncGenerator[Delta]:
    stream = cut_short(state.model.stream(call.page.body), state.agent.limits.reply_characters)
    if state.agent.tool_calling == "native":
        return stream
    return call.text.read(stream)


async def _append(state: RunState, call: _Call) -> None:
    reply, now = call.reply, state.runtime.clock()
    ended = reply.ended or ReplyEnd(finish="stop")
    # One that was cut short is paid for too, and no figures of it come any more.
    is_estimated = ended.usage is None and ended.finish == "length"
    usage = _estimate(state, call) if is_estimated else ended.usage
    spent = state.spend(usage)
    report_usage(state.runtime.telemetry, state.model.name, spent, seconds_between(call.started, call.first_token))
    if ended.usage and ended.usage.input:
        counted = call.manifest.tokens_after
        state.last = Calibration(digest=call.page.digest, counted=counted, reported=ended.usage.input)
    done = CallEnded(
        number=call.number,
        ended=now,
        first_token=call.first_token,
        finish=ended.finish,
        usage=dump({**spent.row(), **({"estimated": True} if is_estimated else {})}) if usage else None,
        price=spent.nanos,
    )
    change = RunChange(
        entries=reply.entries(now, state.runtime.new_id()),
        call_ended=done,
        failures=0,
        too_long=0,
        usage=dump(state.account.row()),
    )
    state.failures = state.too_long = 0
    state.problem = None
    events = [*reply.close(), *ui_events(reply.id, "".join(reply.words), state.agent.locale)]
    # A reply that is the run's last ends it in the same write: one commit less, and nothing between the two.
    match next_step((*state.log, *change.entries), state.snapshot()):
        case Finished(outcome=outcome) if state.agent.titles != "model":
            state.runtime.reached("ending")
            ending, farewell_event = farewell(state, outcome)
            await state.write(replace(change, ending=ending), [*events, farewell_event])
        case _:
            await state.write(change, events)
    state.runtime.reached("replied")


async def _give_up(state: RunState, call: _Call, error: ModelError) -> None:
    """The call failed: what was said of it is taken back, and the run's row counts it."""
    state.problem = fault_text(error)
    state.note_fault(error)
    if _is_for_pictures(call, error):
        state.unpictured, state.failures = True, state.failures + 1
    elif isinstance(error, PageTooLong):
        state.too_long += 1
    else:
        state.failures = state.failures + 1 if error.may_retry else state.agent.limits.failures
    change = replace(
        _unfinished(state, call, str(error)), failures=state.failures, too_long=state.too_long, error=state.problem
    )
    await state.write(change, _take_back(call.reply))
    if error.may_retry and state.failures < state.agent.limits.failures:
        wait = delay(state.failures, error.retry_after, state.runtime.chance(), state.runtime.backoff)
        await asyncio.sleep(min(wait, state.seconds_left))


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


def _take_back(reply: Reply) -> tuple[Event, ...]:
    """What readers need to hear of a reply that does not count."""
    bodies = [body for event in reply.announced for body in encode_event(event)]
    return discard_lost(bodies, logged=(), reason=CUT_SHORT)


async def _keep_what_was_said(state: RunState, call: _Call) -> None:
    """The run is broken off: the partial answer stays, marked. A call that was being written is never run."""
    reply = call.reply
    if any(entry.id == reply.id for entry in state.log):
        return
    now, entries = state.runtime.clock(), list[Entry]()
    rest = call.text.rest()
    events = reply.take(TextDelta(text=rest)) if rest else []
    if not reply.is_empty:
        marker = Interrupted(id=state.runtime.new_id(), time=now, message=reply.id, reason="broken off")
        entries = [*reply.entries(now, state.runtime.new_id()), marker]
    state.runtime.telemetry.broken_off(state.model.name)
    await state.write(replace(_unfinished(state, call, "broken off"), entries=entries), [*events, *reply.close()])


def _unfinished(state: RunState, call: _Call, error: str) -> RunChange:
    """A call that gave no whole reply. What was said is paid for, by the provider's figures or our own count."""
    ended = CallEnded(number=call.number, ended=state.runtime.clock(), first_token=call.first_token, error=error)
    if call.first_token is None and call.reply.used is None:
        return RunChange(call_ended=ended)
    spent = state.spend(_estimate(state, call))
    ended = replace(ended, usage=dump({**spent.row(), "estimated": True}), price=spent.nanos)
    return RunChange(call_ended=ended, usage=dump(state.account.row()))


def _estimate(state: RunState, call: _Call) -> Usage:
    written = state.runtime.counter.count((call.reply.text,))[0]
    reported = call.reply.used or Usage(input=call.manifest.tokens.tokens)
    return replace(reported, output=max(reported.output, written))
