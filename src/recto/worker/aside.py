"""A model call beside the conversation: for a summary, or for a title. Recorded and paid for like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from recto.errors import ModelUnreachable
from recto.page import Facts, Message, assemble
from recto.page.canonical import dump
from recto.store.ports import CallEnded, Change, Purpose
from recto.worker.account import tell
from recto.worker.call_model import begin_call
from recto.worker.collect import Collected, collect
from recto.worker.desk import Desk


async def ask_aside(
    desk: Desk, request: Sequence[Message], purpose: Purpose, seconds: float | None = None
) -> Collected:
    """Ask the model, and wait for all it says, for so many seconds at most. A failure is part of the answer."""
    model, shop = desk.model, desk.shop
    options = {**model.options, **desk.agent.options}
    page, manifest = assemble(Facts(log=request, target=model.target, options=options, counter=shop.counter))
    number = await begin_call(desk, page, manifest, purpose)
    try:
        async with asyncio.timeout(seconds):
            answer = await collect(model, page.body, desk.agent.limits.reply_characters)
    except TimeoutError:
        answer = Collected(error=ModelUnreachable(model=model.name, problem=f"no answer within {seconds:g} seconds."))
    except asyncio.CancelledError:
        await desk.write(Change(call_ended=CallEnded(number=number, ended=shop.clock(), error="broken off")))
        raise
    await desk.write(_failed(desk, number, answer) if answer.error else _answered(desk, number, answer))
    return answer


def _failed(desk: Desk, number: int, answer: Collected) -> Change:
    if answer.error:
        desk.note_fault(answer.error)
    return Change(call_ended=CallEnded(number=number, ended=desk.shop.clock(), error=str(answer.error)))


def _answered(desk: Desk, number: int, answer: Collected) -> Change:
    usage = answer.ended.usage if answer.ended else None
    spent = desk.spend(usage)
    tell(desk.shop.telemetry, desk.model.name, spent, None)
    ended = CallEnded(
        number=number,
        ended=desk.shop.clock(),
        finish=answer.ended.finish if answer.ended else None,
        usage=dump(spent.row()) if usage else None,
        price=spent.nanos,
    )
    return Change(call_ended=ended, usage=dump(desk.account.row()))
