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


async def summarise(state: RunState) -> None:
    """Summarise what the page no longer has room for. After `compactions` failed tries the run goes on without."""
    state.full = False
    seen, settings = view(state.log), state.agent.summary
    place = place_to_cut(seen, least=state.agent.compact.least, counter=state.runtime.counter)
    if place is None:
        await _do_without(state, "there is too little to summarise")
        return
    so_far = seen.compaction.summary if seen.compaction else None
    for piece in summary_pieces(to_summarise(seen, place), settings=settings, counter=state.runtime.counter):
        request = summary_request(piece, so_far=so_far, settings=settings, counter=state.runtime.counter)
        so_far = await _ask(state, request)
        if so_far is None:
            await _do_without(state, "the model gave no summary")
            return
    upto, now = seen.messages[place].id, state.runtime.clock()
    marker = Compacted(id=state.runtime.new_id(), time=now, upto=upto, summary=so_far or "")
    # The page is another one now: what the provider said of the last says nothing of it.
    await state.write(RunChange(entries=(marker,)))
    state.last = None


async def _do_without(state: RunState, problem: str) -> None:
    LOGGER.info("run %s is not compacted: %s", state.run.id, problem, extra={"run": state.run.id})
    state.can_compact = False
    await state.write(RunChange(can_compact=False))


async def _ask(state: RunState, request: Sequence[Message]) -> str | None:
    for failures in range(1, state.agent.limits.compactions + 1):
        reply = await side_call(state, request, "summary")
        finish = reply.ended.finish if reply.ended else None
        if reply.text and finish == "stop":
            return reply.text
        if reply.error and not reply.error.may_retry:
            return None
        retry_after = reply.error.retry_after if reply.error else None
        wait = delay(failures, retry_after, state.runtime.chance(), state.runtime.backoff)
        await asyncio.sleep(min(wait, state.seconds_left))
    return None
