"""How a run ends: one terminal event, in the transaction that ends the run's row. What it says is said here."""

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
from recto.worker.account import usage_row
from recto.worker.log_writer import LogWriter
from recto.worker.recorder import Recorder
from recto.worker.run_state import LoadedRun, RunState

WHY: Mapping[Outcome, str] = {
    "deadline": "The run used all of its {seconds:g} seconds. What it did so far is kept; send a message to go on.",
    "too_many_steps": "The run used all of its {steps} steps. What it did so far is kept; send a message to go on.",
    "bad_arguments": "The model wrote tool arguments that no tool takes, {bad} times in a row. Ask in other words.",
    "filtered": "The provider filtered the answer. Say it in other words.",
    "too_long": "The conversation does not fit into the model's window, even shortened. Start a new one.",
    "model_failed": "The model failed each time. Try again in a few minutes.",
    "unusable_reply": "The model's replies could not be used, {unusable} times in a row: it made up results of tools, "
    "or its calls could not be read. Ask in other words, or use another model.",
    "compact_failed": "The model wrote no summary, asked {tries} times at most. Nothing is changed; try again later.",
}
# What users read of a model's fault. What the provider said, addresses and settings are for the log and for operators.
FAULTS: Mapping[type[ModelError], str] = {
    ModelBusy: "The model is asked too often at present. Try again in a few minutes.",
    ModelUnreachable: "The model cannot be reached at present. Try again in a few minutes.",
    ModelCutOff: "The model broke off its answer each time. Try again in a few minutes.",
    ModelRefused: "The model refused the request. Say it in other words, or tell whoever runs this server.",
    ReplyUnusable: "The model's reply could not be used.",
    PageTooLong: "The conversation is too long for the model. Start a new one.",
}
# Once for each run that fails, whatever was said of its steps; nothing of what users said is in it.
FAILED = "run %s of thread %s by agent %s failed: %s"
LOGGER = logging.getLogger("recto.worker")
WAITING = "waiting"
INTERNAL = "internal"
UNFORESEEN = (
    "The server failed. What the run did is kept: send a message to go on. "
    "If it fails again, tell whoever runs the server; its log says why."
)


async def finish(state: RunState, writer: LogWriter, outcome: Outcome) -> bool:
    """End the run as `next_step` says. Returns True: it has ended."""
    ending, event = farewell(state, outcome)
    await writer.write(RunChange(ending=ending), [event])
    if ending.error:
        row = state.row
        LOGGER.warning(FAILED, row.id, row.thread, row.agent, f"{outcome}: {ending.error}", extra={"run": row.id})
    return True


def farewell(state: RunState, outcome: Outcome) -> tuple[RunEnding, Event]:
    """How the run's row ends, and the last event its readers get."""
    used = state.account.usage
    usage = usage_row(used) if used.output or used.input else None
    match outcome:
        case "done" | "length" | "refused" | "nothing_to_compact":
            reason = None if outcome == "done" else outcome
            end = RunFinished(thread=state.row.thread, run=state.row.name, finish=reason, usage=usage)
            return RunEnding(outcome=outcome), end
        case "cancelled":
            end = RunFinished(thread=state.row.thread, run=state.row.name, outcome="cancelled", usage=usage)
            return RunEnding(outcome=outcome), end
        case _:
            why = _why(state, outcome)
            return RunEnding(outcome=outcome, error=why), RunFailed(message=why, code=outcome, usage=usage)


async def wait_for_client(run: LoadedRun, step: WaitForClient) -> bool:
    """End the run with calls that are the client's to answer, or a person's to agree to; its next run brings both.

    Who was not asked yet is asked in the write that ends it.
    """
    row, writer = run.state.row, run.writer
    asks = tuple(_asks(run, step.confirm))
    waiting = [one for one in interrupts_of(view((*writer.log, *asks))) if one.waits]
    event = RunFinished(
        thread=row.thread,
        run=row.name,
        pending=tuple(call.id for call in step.calls),
        interrupts=tuple([interrupt_event(one, run.inputs.agent.locale) for one in waiting]),
        usage=usage_row(run.state.account.usage),
    )
    run.runtime.reached("asking")
    await writer.write(RunChange(entries=asks, ending=RunEnding(outcome=WAITING)), [event])
    run.runtime.reached("asked")
    return True


def _asks(run: LoadedRun, calls: Sequence[ToolCall]) -> Iterator[ConfirmAsked]:
    """A question for each call that does not have one that waits. What was approved for an earlier run is spent."""
    seen, row, now = view(run.writer.log), run.state.row, run.runtime.clock()
    message = seen.reply.id if seen.reply else ""
    waiting = {one.call.id for one in interrupts_of(seen) if one.message == message and one.waits}
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


def _why(state: RunState, outcome: Outcome) -> str:
    if state.problem and outcome == "model_failed":
        return state.problem
    limits = state.limits
    counts = {"steps": limits.steps, "bad": limits.bad_arguments + 1, "tries": limits.compactions}
    counts["unusable"] = limits.unusable_replies + 1
    return WHY[outcome].format(seconds=limits.seconds, **counts)


def fault_text(error: ModelError) -> str:
    """What users read of a model's fault."""
    return FAULTS.get(type(error), WHY["model_failed"])


async def give_up(writer: LogWriter | Recorder, error: Exception) -> None:
    """End a run nobody can go on with. What it was asked is kept, if that could be read."""
    message = str(error) if isinstance(error, RunGivenUp) else UNFORESEEN
    await writer.write(
        RunChange(ending=RunEnding(outcome=INTERNAL, error=message)), [RunFailed(message=message, code=INTERNAL)]
    )
