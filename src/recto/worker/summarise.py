"""Compaction at work (R13): a summary by the model becomes a marker in the log. Failure changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from recto.errors import ModelError
from recto.models.backoff import delay
from recto.page import (
    Compacted,
    Facts,
    Message,
    assemble,
    place_to_cut,
    summary_pieces,
    summary_request,
    to_summarise,
    view,
)
from recto.page.canonical import dump
from recto.store.ports import CallEnded, Change
from recto.worker.account import Account, tell
from recto.worker.call_model import begin_call
from recto.worker.collect import collect
from recto.worker.desk import Desk

NOT_WHOLE = "the summary was not whole ({finish})"


async def summarise(desk: Desk) -> None:
    """Summarise what the page no longer has room for. After `compactions` failed tries the run goes on without."""
    desk.full = False
    seen, settings = view(desk.log), desk.agent.summary
    place = place_to_cut(seen, least=desk.agent.compact.least, counter=desk.shop.counter)
    if place is None:
        await _do_without(desk, "there is too little to summarise")
        return
    so_far = seen.compaction.summary if seen.compaction else None
    for piece in summary_pieces(to_summarise(seen, place), settings=settings, counter=desk.shop.counter):
        request = summary_request(piece, so_far=so_far, settings=settings, counter=desk.shop.counter)
        so_far = await _ask(desk, request)
        if so_far is None:
            await _do_without(desk, desk.problem or "the model gave no summary")
            return
    upto, now = seen.messages[place].id, desk.shop.clock()
    marker = Compacted(id=desk.shop.new_id(), time=now, upto=upto, summary=so_far or "")
    # The page is another one now: what the provider said of the last says nothing of it.
    await desk.write(Change(entries=(marker,)))
    desk.last = None


async def _do_without(desk: Desk, problem: str) -> None:
    desk.can_compact, desk.problem = False, problem
    await desk.write(Change(can_compact=False, error=problem))


async def _ask(desk: Desk, request: Sequence[Message]) -> str | None:
    model = desk.model
    page, manifest = assemble(Facts(log=request, target=model.target, options=model.options, counter=desk.shop.counter))
    for failures in range(1, desk.agent.limits.compactions + 1):
        number = await begin_call(desk, page, manifest, "summary")
        try:
            reply = await collect(model, page.body)
        except asyncio.CancelledError:
            await desk.write(Change(call_ended=CallEnded(number=number, ended=desk.shop.clock(), error="broken off")))
            raise
        usage = reply.ended.usage if reply.ended else None
        spent, finish = desk.spend(usage), reply.ended.finish if reply.ended else None
        _tell(desk, spent, reply.error)
        reported = dump(spent.row()) if usage else None
        problem = str(reply.error) if reply.error else None
        done = CallEnded(
            number=number,
            ended=desk.shop.clock(),
            finish=finish,
            usage=reported,
            error=problem,
            price=spent.nanos,
        )
        await desk.write(Change(call_ended=done, usage=dump(desk.account.row())))
        if reply.text and finish == "stop":
            return reply.text
        desk.problem = problem or NOT_WHOLE.format(finish=finish)
        if reply.error and not reply.error.may_retry:
            return None
        wait = delay(failures, reply.error.retry_after if reply.error else None, desk.shop.chance(), desk.shop.backoff)
        await asyncio.sleep(min(wait, desk.seconds_left))
    return None


def _tell(desk: Desk, spent: Account, error: ModelError | None) -> None:
    if error:
        desk.shop.telemetry.failed(desk.model.name, error)
    else:
        tell(desk.shop.telemetry, desk.model.name, spent, None)
