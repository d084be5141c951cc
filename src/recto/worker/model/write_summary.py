"""Compaction at work (R13): a summary by the model becomes a marker in the log. Failure changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from statistics import mode

from recto.agents.spoken_language import language_of
from recto.conversation.events import StepFinished, StepStarted
from recto.conversation.log import Compacted, View, view
from recto.conversation.messages import Message, UserMessage, texts_of
from recto.models.faults import delay
from recto.page.prompt.summarise import summary_pieces, summary_request
from recto.page.steps.compact import place_to_cut, to_summarise
from recto.store.ports import RunChange
from recto.tools.ports import Progress
from recto.worker.model.side_call import side_call
from recto.worker.run_spans import note_retry
from recto.worker.run_state import LoadedRun
from recto.worker.tools.tool_progress import ProgressReporter

LOGGER = logging.getLogger("recto.worker")
COMPACT = "compact"


async def summarise(run: LoadedRun) -> None:
    """Summarise what the page no longer has room for. After `compactions` failed tries the run goes on without."""
    run.state.note_full(is_full=False)
    runtime = run.runtime
    if run.inputs.shown_history is not None:
        # What a window left in the store is to be summarised too.
        await run.writer.read_whole()
    seen = view(run.writer.log)
    place = place_to_cut(seen, run.inputs.compacting, runtime.counter)
    if place is None:
        await _do_without(run, "there is too little to summarise")
        return
    # It may take a minute: that the run began is not held back for so long, and that it does something is told.
    await run.writer.settle()
    run.writer.mention(StepStarted(step=COMPACT))
    try:
        summary = await _write(run, seen, to_summarise(seen, place))
    finally:
        # What is written next takes it along. Where nothing is any more, whoever goes on with the run closes it.
        run.writer.mention(StepFinished(step=COMPACT))
    if summary is None:
        await _do_without(run, "the model gave no summary")
        return
    upto, now = seen.messages[place].id, runtime.clock()
    marker = Compacted(id=runtime.new_id(), time=now, upto=upto, summary=summary)
    runtime.reached("summarised")
    await run.writer.write(RunChange(entries=(marker,)))
    runtime.reached("compacted")
    # The page is another one now: what the provider said of the last says nothing of it.
    run.inputs.calibrate(None)


async def _write(run: LoadedRun, seen: View, messages: Sequence[Message]) -> str | None:
    """The summary in force carried on over some messages, piece by piece; None where the model gave none."""
    settings, counter = replace(run.inputs.agent.summary, locale=_language(run, seen)), run.runtime.counter
    pieces = summary_pieces(messages, settings=settings, counter=counter)
    reporter = ProgressReporter(run.writer.mention, f"{run.state.row.id}-{COMPACT}", run.runtime.clock)
    progress = Progress(label=COMPACT, done=0, total=len(pieces), unit="pieces")
    summary = seen.compaction.summary if seen.compaction else None
    try:
        for done, piece in enumerate(pieces):
            reporter(replace(progress, done=done))
            summary = await _ask(run, summary_request(piece, so_far=summary, settings=settings, counter=counter))
            if summary is None:
                return None
        reporter(replace(progress, done=len(pieces)))
    finally:
        reporter.end()
    return summary


def _language(run: LoadedRun, seen: View) -> str:
    """What most of the user's messages are written in, of equals the newest; where none tells, the agent's language."""
    said = [" ".join(texts_of(message)) for message in reversed(seen.messages) if isinstance(message, UserMessage)]
    spoken = [found for words in said if (found := language_of(words))]
    return mode(spoken) if spoken else run.inputs.agent.summary.locale


async def _do_without(run: LoadedRun, problem: str) -> None:
    id = run.state.row.id
    LOGGER.info("run %s is not compacted: %s", id, problem, extra={"run": id})
    run.state.give_up_compacting()
    await run.writer.write(RunChange(can_compact=False))


async def _ask(run: LoadedRun, request: Sequence[Message]) -> str | None:
    for failures in range(1, run.state.limits.compactions + 1):
        reply = await side_call(run, request, "summary")
        finish = reply.ended.finish if reply.ended else None
        if reply.text and finish == "stop":
            return reply.text
        if reply.error and not reply.error.may_retry:
            return None
        retry_after = reply.error.retry_after if reply.error else None
        wait = delay(failures, retry_after, run.runtime.chance(), run.runtime.backoff)
        note_retry(run.span, type(reply.error).__name__ if reply.error else str(finish), failures, wait)
        await asyncio.sleep(min(wait, run.state.seconds_left))
    return None
