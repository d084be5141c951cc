"""A model call beside the conversation: for a summary, or for a title. Recorded and paid for like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from recto.page import Facts, Message, assemble
from recto.page.canonical import dump
from recto.store.ports import CallEnded, Change, Purpose
from recto.worker.account import tell
from recto.worker.call_model import begin_call
from recto.worker.collect import Collected, collect
from recto.worker.desk import Desk


async def ask_aside(desk: Desk, request: Sequence[Message], purpose: Purpose) -> Collected:
    """Ask the model, and wait for all it says. A failure is part of the answer, and costs nothing that is known."""
    model, shop = desk.model, desk.shop
    page, manifest = assemble(Facts(log=request, target=model.target, options=model.options, counter=shop.counter))
    number = await begin_call(desk, page, manifest, purpose)
    try:
        answer = await collect(model, page.body)
    except asyncio.CancelledError:
        await desk.write(Change(call_ended=CallEnded(number=number, ended=shop.clock(), error="broken off")))
        raise
    await desk.write(_failed(desk, number, answer) if answer.error else _answered(desk, number, answer))
    return answer


def _failed(desk: Desk, number: int, answer: Collected) -> Change:
    if answer.error:
        desk.shop.telemetry.failed(desk.model.name, answer.error)
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
