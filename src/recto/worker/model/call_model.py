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
from recto.worker.account import seconds_between, tell
from recto.worker.context.quoted import quoted
from recto.worker.finish import farewell, fault_text
from recto.worker.model.reply import Reply
from recto.worker.run_state import RunState
from recto.worker.tools.calls_in_text import CallsInText
from recto.worker.tools.tool_progress import ProgressReporter

CUT_SHORT = "The reply was lost on the way and is asked for again."


async def call_model(desk: RunState) -> None:
    """Ask the model. A page that would not fit is not sent: the next step is another then."""
    if not desk.is_quoted:
        desk.quote, desk.is_quoted = await _quoted(desk), True
    stage = await desk.set_stage()
    facts = desk.facts(stage)
    page, manifest = assemble(facts)
    # A skill that the agent has no more is in the log, but not in the page.
    manifest = replace(manifest, skill=stage.skill.name if stage.skill else None)
    room = replace(desk.agent.compact, window=desk.agent.window or desk.model.window)
    if desk.can_compact and not desk.full and is_full(manifest.tokens.tokens, room):
        desk.full = True
        return
    desk.full = False
    desk.shop.telemetry.page.record(manifest)
    started = desk.shop.clock()
    number = await begin_call(desk, page, manifest, "reply")
    # Only in a thread with files can an id be in the arguments; elsewhere readers get them as they are written.
    theirs = frozenset(name for name in desk.client_tools if desk.runner_of(name) != "server")
    reply = Reply(
        id=desk.message_id(),
        reasoning_id=desk.shop.new_id(),
        most_calls=desk.agent.limits.calls,
        whole=theirs if desk.files.refs else frozenset(),
        files_of=desk.refs_in,
        runner_of=desk.runner_of,
        call_id=desk.call_id,
    )
    text = CallsInText(iter(desk.shop.new_id, None))
    call = _Call(number=number, facts=facts, page=page, manifest=manifest, reply=reply, text=text, started=started)
    try:
        await _listen(desk, call)
    except ModelError as error:
        await _give_up(desk, call, error)
    except asyncio.CancelledError:
        if desk.broken_off:
            await _keep_what_was_said(desk, call)
        raise
    else:
        await _append(desk, call)


async def _quoted(desk: RunState) -> Quote | None:
    teller = ProgressReporter(desk.recorder.mention, f"{desk.run.response_id}-documents", desk.shop.clock)
    files = desk.at_hand() if desk.files.refs else None
    if files and desk.agent.file_input.mode == "always":
        # Documents may take long: that the run began, and what it was asked, is not held back for so long.
        await desk.settle()
    try:
        return await quoted(desk.agent, files, desk.shop.counter, teller, desk.shop.quoting)
    finally:
        teller.end()


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


async def begin_call(desk: RunState, page: Page, manifest: Manifest, purpose: Purpose) -> int:
    """Store what a page is made of, under the fence, before it is sent. Returns the number of the call."""
    before = desk.page.segments if desk.page else ()
    shared = 0
    for old, new in zip(before, page.segments, strict=False):
        if old.sha256 != new.sha256:
            break
        shared += 1
    known = {segment.sha256 for segment in before}
    desk.calls += 1
    call = CallBegun(
        number=desk.calls,
        purpose=purpose,
        model=desk.model.name,
        digest=page.digest,
        shared=shared,
        hashes=b"".join([segment.sha256 for segment in page.segments[shared:]]),
        segments=[segment for segment in page.segments[shared:] if segment.sha256 not in known],
        manifest=dump({"parts": manifest.rows(), "tokens": manifest.tokens.tokens, "skill": manifest.skill}),
        started=desk.shop.clock(),
    )
    await desk.write(RunChange(call=call))
    desk.page = page
    desk.shop.reached("call_begun")
    return desk.calls


async def _listen(desk: RunState, call: _Call) -> None:
    # Closing the stream is what ends the call, so it is closed in any case.
    async with aclosing(_deltas(desk, call)) as stream:
        async for delta in stream:
            call.first_token = call.first_token or _time_of(desk, delta)
            events = call.reply.take(delta)
            if events:
                # From now on readers know the id: another try goes by another.
                desk.said.add(call.reply.id)
                await desk.recorder.say(events)
                desk.shop.reached("delta")


def _time_of(desk: RunState, delta: Delta) -> datetime | None:
    # A count of tokens is not one.
    return None if isinstance(delta, Used) else desk.shop.clock()


def _deltas(desk: RunState, call: _Call) -> AsyncGenerator[Delta]:
    stream = cut_short(desk.model.stream(call.page.body), desk.agent.limits.reply_characters)
    if desk.agent.tool_calling == "native":
        return stream
    return call.text.read(stream)


async def _append(desk: RunState, call: _Call) -> None:
    reply, now = call.reply, desk.shop.clock()
    ended = reply.ended or ReplyEnd(finish="stop")
    # One that was cut short is paid for too, and no figures of it come any more.
    is_estimated = ended.usage is None and ended.finish == "length"
    usage = _estimate(desk, call) if is_estimated else ended.usage
    spent = desk.spend(usage)
    tell(desk.shop.telemetry, desk.model.name, spent, seconds_between(call.started, call.first_token))
    if ended.usage and ended.usage.input:
        counted = call.manifest.tokens_after
        desk.last = Calibration(digest=call.page.digest, counted=counted, reported=ended.usage.input)
    done = CallEnded(
        number=call.number,
        ended=now,
        first_token=call.first_token,
        finish=ended.finish,
        usage=dump({**spent.row(), **({"estimated": True} if is_estimated else {})}) if usage else None,
        price=spent.nanos,
    )
    change = RunChange(
        entries=reply.entries(now, desk.shop.new_id()),
        call_ended=done,
        failures=0,
        too_long=0,
        usage=dump(desk.account.row()),
    )
    desk.failures = desk.too_long = 0
    desk.problem = None
    events = [*reply.close(), *ui_events(reply.id, "".join(reply.words), desk.agent.locale)]
    # A reply that is the run's last ends it in the same write: one commit less, and nothing between the two.
    match next_step((*desk.log, *change.entries), desk.state()):
        case Finished(outcome=outcome) if desk.agent.titles != "model":
            desk.shop.reached("ending")
            ending, farewell_event = farewell(desk, outcome)
            await desk.write(replace(change, ending=ending), [*events, farewell_event])
        case _:
            await desk.write(change, events)
    desk.shop.reached("replied")


async def _give_up(desk: RunState, call: _Call, error: ModelError) -> None:
    """The call failed: what was said of it is taken back, and the run's row counts it."""
    desk.problem = fault_text(error)
    desk.note_fault(error)
    if _is_for_pictures(call, error):
        desk.unpictured, desk.failures = True, desk.failures + 1
    elif isinstance(error, PageTooLong):
        desk.too_long += 1
    else:
        desk.failures = desk.failures + 1 if error.may_retry else desk.agent.limits.failures
    change = replace(
        _unfinished(desk, call, str(error)), failures=desk.failures, too_long=desk.too_long, error=desk.problem
    )
    await desk.write(change, _take_back(call.reply))
    if error.may_retry and desk.failures < desk.agent.limits.failures:
        wait = delay(desk.failures, error.retry_after, desk.shop.chance(), desk.shop.backoff)
        await asyncio.sleep(min(wait, desk.seconds_left))


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
    bodies = [body for event in reply.told for body in encode_event(event)]
    return discard_lost(bodies, logged=(), reason=CUT_SHORT)


async def _keep_what_was_said(desk: RunState, call: _Call) -> None:
    """The run is broken off: the partial answer stays, marked. A call that was being written is never run."""
    reply = call.reply
    if any(entry.id == reply.id for entry in desk.log):
        return
    now, entries = desk.shop.clock(), list[Entry]()
    rest = call.text.rest()
    events = reply.take(TextDelta(text=rest)) if rest else []
    if not reply.is_empty:
        marker = Interrupted(id=desk.shop.new_id(), time=now, message=reply.id, reason="broken off")
        entries = [*reply.entries(now, desk.shop.new_id()), marker]
    desk.shop.telemetry.broken_off(desk.model.name)
    await desk.write(replace(_unfinished(desk, call, "broken off"), entries=entries), [*events, *reply.close()])


def _unfinished(desk: RunState, call: _Call, error: str) -> RunChange:
    """A call that gave no whole reply. What was said is paid for, by the provider's figures or our own count."""
    ended = CallEnded(number=call.number, ended=desk.shop.clock(), first_token=call.first_token, error=error)
    if call.first_token is None and call.reply.used is None:
        return RunChange(call_ended=ended)
    spent = desk.spend(_estimate(desk, call))
    ended = replace(ended, usage=dump({**spent.row(), "estimated": True}), price=spent.nanos)
    return RunChange(call_ended=ended, usage=dump(desk.account.row()))


def _estimate(desk: RunState, call: _Call) -> Usage:
    written = desk.shop.counter.count((call.reply.text,))[0]
    reported = call.reply.used or Usage(input=call.manifest.tokens.tokens)
    return replace(reported, output=max(reported.output, written))
