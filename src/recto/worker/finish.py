"""End of a run: the terminal event, the transaction that ends the run's row, and the error texts for users."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from recto.conversation.events import Event, RunFailed, RunFinished
from recto.conversation.interrupts import interrupt_event, interrupts_of
from recto.conversation.log import ConfirmAsked, view
from recto.conversation.messages import ToolCall
from recto.conversation.next_step import Outcome, WaitForClient
from recto.errors import (
    ModelBusy,
    ModelCutOff,
    ModelError,
    ModelRefused,
    ModelUnreachable,
    PageTooLong,
    ReplyUnusable,
    RunGivenUp,
)
from recto.store.ports import RunChange, RunEnding
from recto.worker.account import encode_usage
from recto.worker.log_writer import LogWriter
from recto.worker.recorder import Recorder
from recto.worker.run_state import LoadedRun, RunState

WHY: Mapping[Outcome, str] = {
    "deadline": "The run reached its limit of {seconds:g} seconds. Its work is kept; send a message to continue.",
    "too_many_steps": "The run reached its limit of {steps} steps. Its work is kept; send a message to continue.",
    "bad_arguments": "The model wrote invalid tool arguments {bad} times in a row. Rephrase your message.",
    "filtered": "The provider filtered the answer. Rephrase your message.",
    "too_long": "The conversation does not fit into the model's window, even after compaction. Start a new one.",
    "model_failed": "The model failed each time. Try again in a few minutes.",
    "unusable_reply": "The model's replies were unusable {unusable} times in a row: it invented tool results, or its "
    "calls could not be read. Rephrase your message, or use another model.",
    "compact_failed": "The model wrote no summary in up to {tries} tries. Nothing is changed; try again later.",
}
# Texts for users about errors of models. Only the log has the provider's text, addresses and settings, for operators.
FAULTS: Mapping[type[ModelError], str] = {
    ModelBusy: "The model is busy. Try again in a few minutes.",
    ModelUnreachable: "The model cannot be reached. Try again in a few minutes.",
    ModelCutOff: "The model's answer was cut off each time. Try again in a few minutes.",
    ModelRefused: "The model rejected the request. Rephrase your message, or ask the operator of this server.",
    ReplyUnusable: "The model's reply could not be used.",
    PageTooLong: "The conversation is too long for the model. Start a new one.",
}
# Log line for a failed run. It contains no user content.
FAILED = "run %s of thread %s by agent %s failed: %s"
LOGGER = logging.getLogger("recto.worker")
WAITING = "waiting"
INTERNAL = "internal"
UNFORESEEN = (
    "The server failed. The work of the run is kept: send a message to continue. "
    "If it fails again, ask the operator; the server's log has the reason."
)


async def finish(state: RunState, writer: LogWriter, outcome: Outcome) -> None:
    """End the run with the outcome that `next_step` chose."""
    ending, event = build_ending(state, outcome)
    await writer.write(RunChange(ending=ending), [event])
    if ending.error:
        row = state.row
        LOGGER.warning(FAILED, row.id, row.thread, row.agent, f"{outcome}: {ending.error}", extra={"run": row.id})


def build_ending(state: RunState, outcome: Outcome) -> tuple[RunEnding, Event]:
    """Return the end of the run's row, and the last event for readers."""
    tokens, limits = state.account.usage, state.limits
    usage = encode_usage(tokens) if tokens.output or tokens.input else None
    match outcome:
        case "done" | "length" | "refused" | "nothing_to_compact":
            reason = None if outcome == "done" else outcome
            end = RunFinished(thread=state.row.thread, run=state.row.name, finish=reason, usage=usage)
            return RunEnding(outcome=outcome), end
        case "cancelled":
            end = RunFinished(thread=state.row.thread, run=state.row.name, outcome="cancelled", usage=usage)
            return RunEnding(outcome=outcome), end
        case _:
            text = WHY[outcome].format(
                seconds=limits.seconds,
                steps=limits.steps,
                bad=limits.bad_arguments + 1,
                tries=limits.compactions,
                unusable=limits.unusable_replies + 1,
            )
            text = state.problem if state.problem and outcome == "model_failed" else text
            return RunEnding(outcome=outcome, error=text), RunFailed(message=text, code=outcome, usage=usage)


async def wait_for_client(run: LoadedRun, step: WaitForClient) -> None:
    """End the run, because the client must answer calls or a person must approve them.

    The answers arrive with the next run of the thread. The write that ends the run also stores the new questions.
    """
    row, writer = run.state.row, run.writer
    questions = tuple(_questions(run, step.confirm))
    interrupts = [one for one in interrupts_of(view((*writer.log, *questions))) if one.is_waiting]
    event = RunFinished(
        thread=row.thread,
        run=row.name,
        pending=tuple(call.id for call in step.calls),
        interrupts=tuple([interrupt_event(one, run.inputs.agent.locale) for one in interrupts]),
        usage=encode_usage(run.state.account.usage),
    )
    run.runtime.checkpoint("asking")
    await writer.write(RunChange(entries=questions, ending=RunEnding(outcome=WAITING)), [event])
    run.runtime.checkpoint("asked")


def _questions(run: LoadedRun, calls: Sequence[ToolCall]) -> Iterator[ConfirmAsked]:
    """Yield a question for each call that has no open question. Approvals of earlier runs do not count."""
    log_view, row, now = view(run.writer.log), run.state.row, run.runtime.clock()
    message = log_view.reply.id if log_view.reply else ""
    waiting = {one.call.id for one in interrupts_of(log_view) if one.message == message and one.is_waiting}
    for call in calls:
        if call.id not in waiting:
            yield ConfirmAsked(
                id=run.runtime.new_id(),
                time=now,
                message=message,
                call=call.id,
                run=row.name,
                seconds=run.state.limits.confirm_seconds,
            )


def describe_fault(error: ModelError) -> str:
    """Return the text for users about an error of a model."""
    return FAULTS.get(type(error), WHY["model_failed"])


async def give_up(writer: LogWriter | Recorder, error: Exception) -> None:
    """End a run that no worker can continue. Store its input if it is readable."""
    message = str(error) if isinstance(error, RunGivenUp) else UNFORESEEN
    await writer.write(
        RunChange(ending=RunEnding(outcome=INTERNAL, error=message)), [RunFailed(message=message, code=INTERNAL)]
    )
