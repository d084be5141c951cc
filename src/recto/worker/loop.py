"""The run loop: load a claimed run, then take one step after another.

All state that the loop needs is in the log and in the row of the run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from recto.conversation.input.run_input import RunInput, stored_input
from recto.conversation.next_step import CallModel, Compact, Finished, RunTools, WaitForClient, next_step
from recto.engine.ports import Signal
from recto.errors import LeaseLost, RunGivenUp, StoreBusy, StoreDown
from recto.store.ports import StoredRun
from recto.tracing.spans import NO_SPAN
from recto.worker.account import seconds_between
from recto.worker.finish import FAILED, INTERNAL, finish, give_up, wait_for_client
from recto.worker.load_run import load_run
from recto.worker.log_writer import LogWriter
from recto.worker.model.call_model import call_model
from recto.worker.model.side_calls import compact, name_thread, needs_title
from recto.worker.recorder import Recorder
from recto.worker.run_spans import begin_run, end_run
from recto.worker.run_state import LoadedRun, RunState, is_done_in_time, snapshot
from recto.worker.runtime import Runtime
from recto.worker.tools.run_tools import run_tools, send_back_bad_calls

LOGGER = logging.getLogger("recto.worker")
TOO_MANY_LOSSES = "{count} workers stopped during this run, so it was ended. Its work is kept."
NO_AGENT = "The agent {name!r} of this run no longer exists. Its work is kept; continue with another agent."


async def work(runtime: Runtime, row: StoredRun, signal: Signal, request: RunInput | None = None) -> bool:
    """Work on a run. Return True if it ended, and False if it must be handed back.

    `request` is the parsed input of the run, if the caller has it.
    """
    recorder = Recorder(runtime.store, runtime.hub, row.lease, clock=runtime.clock, settings=runtime.recorder)
    run: LoadedRun | None = None
    span = NO_SPAN
    with runtime.hub.open_writer(row.id):
        try:
            request = request or stored_input(row.input)
            span = begin_run(runtime.tracer, row, request)
            run = await load_run(runtime, row, request, signal, recorder, span=span)
            if row.agent not in runtime.agents:
                raise RunGivenUp(NO_AGENT.format(name=row.agent))
            if row.losses >= run.state.limits.claims:
                raise RunGivenUp(TOO_MANY_LOSSES.format(count=row.losses))
            if row.fence == 1:
                runtime.telemetry.record_run_start(seconds_between(row.created, row.started) or 0.0)
            await _loop(run)
            return run.writer.outcome is not None
        except (LeaseLost, StoreBusy, StoreDown):
            # The run is not at fault, so another worker continues it.
            raise
        except Exception as error:
            LOGGER.exception(FAILED, row.id, row.thread, row.agent, INTERNAL, extra={"run": row.id})
            runtime.telemetry.record_error(error)
            span.fail(type(error).__name__)
            await _give_up(run.writer if run else recorder, recorder, error)
            return True
        finally:
            if recorder.outcome:
                seconds = seconds_between(row.started, runtime.clock()) or 0.0
                runtime.telemetry.record_run_end(row.agent, recorder.outcome, seconds)
            end_run(span, recorder.outcome, run.state.account.usage if run else None)
            await recorder.close()


async def _give_up(writer: LogWriter | Recorder, recorder: Recorder, error: Exception) -> None:
    """End a failed run. If its input cannot be stored, end the run without its input."""
    try:
        await give_up(writer, error)
    except (LeaseLost, StoreBusy, StoreDown):
        raise
    except Exception:
        LOGGER.exception("the input of run %s cannot be stored", recorder.run, extra={"run": recorder.run})
        await give_up(recorder, error)


async def _loop(run: LoadedRun) -> None:
    state, writer = run.state, run.writer
    while not (writer.outcome or state.signal.leaving.is_set()):
        match next_step(writer.log, snapshot(state, run.inputs)):
            case CallModel():
                await _unless_stopped(state, call_model(run))
            case RunTools() as step:
                await _unless_stopped(state, run_tools(run, step))
            case Compact():
                await _unless_stopped(state, compact(run))
            case WaitForClient() as step:
                if not await send_back_bad_calls(run, step):
                    await wait_for_client(run, step)
            case Finished(outcome="done") if needs_title(run):
                await _unless_stopped(state, name_thread(run))
            case Finished(outcome=outcome):
                run.runtime.checkpoint("ending")
                await finish(state, writer, outcome)


async def _unless_stopped(state: RunState, step: Coroutine[object, object, None]) -> None:
    """Take a step. If the run is cancelled or its time ends, stop the step and keep its partial result."""
    task = asyncio.create_task(step)
    try:
        if not await is_done_in_time(state, task):
            state.stop()
            task.cancel()
            await asyncio.wait((task,))
        if not task.cancelled():
            task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
