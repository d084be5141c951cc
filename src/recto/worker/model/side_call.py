"""A model call beside the conversation: for a summary, or for a title. Recorded and paid for like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from recto.conversation.json import dump
from recto.conversation.messages import Message
from recto.errors import ModelError, ModelUnreachable
from recto.models.deltas import cut_short
from recto.models.ports import Delta, Model, ReplyEnd, TextDelta, Usage
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.store.ports import CallEnd, Purpose, RunChange
from recto.tracing.spans import TraceSpan
from recto.worker.account import Account, report_usage
from recto.worker.model.call_model import begin_call, note_fault
from recto.worker.run_spans import begin_model_call, note_reply
from recto.worker.run_state import LoadedRun


@dataclass(kw_only=True)
class Collected:
    """What came of one try."""

    words: list[str] = field(default_factory=list[str])
    ended: ReplyEnd | None = None
    error: ModelError | None = None

    @property
    def text(self) -> str:
        """The words, joined."""
        return "".join(self.words)

    def take(self, delta: Delta) -> None:
        """One more delta. Thoughts and calls are nobody's here."""
        if isinstance(delta, TextDelta):
            self.words.append(delta.text)
        elif isinstance(delta, ReplyEnd):
            self.ended = delta


async def collect(model: Model, body: bytes, most: int) -> Collected:
    """Send a page and wait for the whole reply, up to so many characters; a failure is part of the answer."""
    collected = Collected()
    try:
        async with aclosing(cut_short(model.stream(body), most)) as stream:
            async for delta in stream:
                collected.take(delta)
    except ModelError as error:
        collected.error = error
    return collected


async def side_call(
    run: LoadedRun, request: Sequence[Message], purpose: Purpose, seconds: float | None = None
) -> Collected:
    """Ask the model, and wait for all it says, for so many seconds at most. A failure is part of the answer."""
    model, agent, runtime = run.inputs.model, run.inputs.agent, run.runtime
    options = {**model.options, **agent.options}
    page, manifest = assemble(Facts(log=request, target=model.target, options=options, counter=runtime.counter))
    number = await begin_call(run, page, manifest, purpose)
    try:
        with begin_model_call(run.span, model.name, number, purpose, manifest) as span:
            async with asyncio.timeout(seconds):
                answer = await collect(model, page.body, agent.limits.reply_characters)
            _note_answer(span, answer)
    except TimeoutError:
        answer = Collected(error=ModelUnreachable(model=model.name, problem=f"no answer within {seconds:g} seconds."))
    except asyncio.CancelledError:
        await run.writer.write(RunChange(call_end=CallEnd(number=number, ended=runtime.clock(), error="broken off")))
        raise
    await run.writer.write(_failed(run, number, answer) if answer.error else _answered(run, number, answer))
    return answer


def _note_answer(span: TraceSpan, answer: Collected) -> None:
    if answer.error:
        span.fail(type(answer.error).__name__)
    elif answer.ended:
        note_reply(span, answer.ended.finish, Account(usage=answer.ended.usage or Usage(), price=None), None)


def _failed(run: LoadedRun, number: int, answer: Collected) -> RunChange:
    if answer.error:
        note_fault(run, answer.error)
    return RunChange(call_end=CallEnd(number=number, ended=run.runtime.clock(), error=str(answer.error)))


def _answered(run: LoadedRun, number: int, answer: Collected) -> RunChange:
    usage = answer.ended.usage if answer.ended else None
    name, runtime = run.inputs.model.name, run.runtime
    spent = run.state.spend(name, usage, runtime.prices)
    report_usage(runtime.telemetry, name, spent, None)
    ended = CallEnd(
        number=number,
        ended=runtime.clock(),
        finish=answer.ended.finish if answer.ended else None,
        usage=dump(spent.row()) if usage else None,
        price=spent.nanos,
    )
    return RunChange(call_end=ended, usage=dump(run.state.account.row()))
