"""Compaction at work (R13): a summary by the model becomes a marker in the log. Failure changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from recto.conversation.log import Compacted, view
from recto.conversation.messages import Message
from recto.models.backoff import delay
from recto.page.prompt.summarise import summary_pieces, summary_request
from recto.page.steps.compact import place_to_cut, to_summarise
from recto.store.ports import RunChange
from recto.worker.model.side_call import side_call
from recto.worker.run_state import RunState

LOGGER = logging.getLogger("recto.worker")


async def summarise(desk: RunState) -> None:
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
            await _do_without(desk, "the model gave no summary")
            return
    upto, now = seen.messages[place].id, desk.shop.clock()
    marker = Compacted(id=desk.shop.new_id(), time=now, upto=upto, summary=so_far or "")
    # The page is another one now: what the provider said of the last says nothing of it.
    await desk.write(RunChange(entries=(marker,)))
    desk.last = None


async def _do_without(desk: RunState, problem: str) -> None:
    LOGGER.info("run %s is not compacted: %s", desk.run.id, problem, extra={"run": desk.run.id})
    desk.can_compact = False
    await desk.write(RunChange(can_compact=False))


async def _ask(desk: RunState, request: Sequence[Message]) -> str | None:
    for failures in range(1, desk.agent.limits.compactions + 1):
        reply = await side_call(desk, request, "summary")
        finish = reply.ended.finish if reply.ended else None
        if reply.text and finish == "stop":
            return reply.text
        if reply.error and not reply.error.may_retry:
            return None
        wait = delay(failures, reply.error.retry_after if reply.error else None, desk.shop.chance(), desk.shop.backoff)
        await asyncio.sleep(min(wait, desk.seconds_left))
    return None
