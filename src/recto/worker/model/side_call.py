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
from recto.models.ports import Delta, Model, ReplyEnd, TextDelta
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.store.ports import CallEnded, Purpose, RunChange
from recto.worker.account import report_usage
from recto.worker.model.call_model import begin_call
from recto.worker.run_state import RunState


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
    state: RunState, request: Sequence[Message], purpose: Purpose, seconds: float | None = None
) -> Collected:
    """Ask the model, and wait for all it says, for so many seconds at most. A failure is part of the answer."""
    model, runtime = state.model, state.runtime
    options = {**model.options, **state.agent.options}
    page, manifest = assemble(Facts(log=request, target=model.target, options=options, counter=runtime.counter))
    number = await begin_call(state, page, manifest, purpose)
    try:
        async with asyncio.timeout(seconds):
            answer = await collect(model, page.body, state.agent.limits.reply_characters)
    except TimeoutError:
        answer = Collected(error=ModelUnreachable(model=model.name, problem=f"no answer within {seconds:g} seconds."))
    except asyncio.CancelledError:
        await state.write(RunChange(call_ended=CallEnded(number=number, ended=runtime.clock(), error="broken off")))
        raise
    await state.write(_failed(state, number, answer) if answer.error else _answered(state, number, answer))
    return answer


def _failed(state: RunState, number: int, answer: Collected) -> RunChange:
    if answer.error:
        state.note_fault(answer.error)
    return RunChange(call_ended=CallEnded(number=number, ended=state.runtime.clock(), error=str(answer.error)))


def _answered(state: RunState, number: int, answer: Collected) -> RunChange:
    usage = answer.ended.usage if answer.ended else None
    spent = state.spend(usage)
    report_usage(state.runtime.telemetry, state.model.name, spent, None)
    ended = CallEnded(
        number=number,
        ended=state.runtime.clock(),
        finish=answer.ended.finish if answer.ended else None,
        usage=dump(spent.row()) if usage else None,
        price=spent.nanos,
    )
    return RunChange(call_ended=ended, usage=dump(state.account.row()))
