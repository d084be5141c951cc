"""The loop: take up a claimed run, do what is next until nothing is. Everything it knows is in the log and the row."""

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
from recto.worker.model.name_thread import name_thread, wants_name
from recto.worker.model.write_summary import summarise
from recto.worker.recorder import Recorder
from recto.worker.run_spans import begin_run, end_run
from recto.worker.run_state import LoadedRun, RunState, is_done_in_time
from recto.worker.runtime import Runtime
from recto.worker.tools.run_tools import run_tools, send_back_bad_calls

LOGGER = logging.getLogger("recto.worker")
TOO_OFTEN = "{count} workers were lost over this run, so it is given up. What it did is kept."
NO_AGENT = "The agent {name!r} of this run is not there any more. What was said is kept; go on with another agent."


async def work(runtime: Runtime, row: StoredRun, signal: Signal, parsed: RunInput | None = None) -> bool:
    """Work on a run until it ends (True) or has to be handed back (False). `parsed` is its input, where it is known."""
    recorder = Recorder(runtime.store, runtime.hub, row.lease, clock=runtime.clock, settings=runtime.recorder)
    run: LoadedRun | None = None
    span = NO_SPAN
    with runtime.hub.open_writer(row.id):
        try:
            asked = parsed or stored_input(row.input)
            span = begin_run(runtime.tracer, row, asked)
            run = await load_run(runtime, row, asked, signal, recorder, span=span)
            _check(run)
            if row.fence == 1:
                runtime.telemetry.began(seconds_between(row.created, row.started) or 0.0)
            return await _loop(run)
        except (LeaseLost, StoreBusy, StoreDown):
            # Not the run's fault: somebody goes on with it.
            raise
        except Exception as error:
            LOGGER.exception(FAILED, row.id, row.thread, row.agent, INTERNAL, extra={"run": row.id})
            runtime.telemetry.went_wrong(error)
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
    """End the run with what it was asked, if that can be stored; else without: a run must end."""
    try:
        await give_up(writer, error)
    except (LeaseLost, StoreBusy, StoreDown):
        raise
    except Exception:
        LOGGER.exception("what run %s was asked cannot be stored", recorder.run, extra={"run": recorder.run})
        await give_up(recorder, error)


def _check(run: LoadedRun) -> None:
    """A run nobody can or should work on is given up."""
    row = run.state.row
    if row.agent not in run.runtime.agents:
        raise RunGivenUp(NO_AGENT.format(name=row.agent))
    if row.losses >= run.state.limits.claims:
        raise RunGivenUp(TOO_OFTEN.format(count=row.losses))


async def _loop(run: LoadedRun) -> bool:
    state, writer = run.state, run.writer
    while True:
        if writer.outcome or state.signal.leaving.is_set():
            return writer.outcome is not None
        match next_step(writer.log, run.snapshot()):
            case CallModel():
                await _unless_stopped(state, call_model(run))
            case RunTools() as step:
                await _unless_stopped(state, run_tools(run, step))
            case Compact():
                await _unless_stopped(state, summarise(run))
            case WaitForClient() as step:
                if not await send_back_bad_calls(run, step):
                    return await wait_for_client(run, step)
            case Finished(outcome="done") if wants_name(run):
                await _unless_stopped(state, name_thread(run))
            case Finished(outcome=outcome):
                run.runtime.reached("ending")
                return await finish(state, writer, outcome)


async def _unless_stopped(state: RunState, step: Coroutine[object, object, None]) -> None:
    """Do a step, unless the run is cancelled or its time is up: then it ends at once, and keeps what it has."""
    doing = asyncio.create_task(step)
    try:
        if not await is_done_in_time(state, doing):
            state.break_off()
            doing.cancel()
            await asyncio.wait((doing,))
        if not doing.cancelled():
            doing.result()
    finally:
        if not doing.done():
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)
