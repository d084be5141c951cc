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
from recto.worker.account import seconds_between
from recto.worker.finish import finish, give_up, wait_for_client
from recto.worker.load_run import load_run
from recto.worker.model.call_model import call_model
from recto.worker.model.name_thread import name_thread, wants_name
from recto.worker.model.write_summary import summarise
from recto.worker.recorder import Recorder
from recto.worker.run_state import RunState, is_done_in_time
from recto.worker.runtime import Runtime
from recto.worker.tools.run_tools import run_tools, send_back_bad_calls

LOGGER = logging.getLogger("recto.worker")
TOO_OFTEN = "{count} workers were lost over this run, so it is given up. What it did is kept."
NO_AGENT = "The agent {name!r} of this run is not there any more. What was said is kept; go on with another agent."


async def work(runtime: Runtime, run: StoredRun, signal: Signal, parsed: RunInput | None = None) -> bool:
    """Work on a run until it ends (True) or has to be handed back (False). `parsed` is its input, where it is known."""
    recorder = Recorder(runtime.store, runtime.hub, run.lease, clock=runtime.clock, settings=runtime.recorder)
    state: RunState | None = None
    with runtime.hub.writing(run.id):
        try:
            state = await load_run(runtime, run, parsed or stored_input(run.input), signal, recorder)
            _check(state)
            if run.fence == 1:
                runtime.telemetry.began(seconds_between(run.created, run.started) or 0.0)
            return await _loop(state)
        except (LeaseLost, StoreBusy, StoreDown):
            # Not the run's fault: somebody goes on with it.
            raise
        except Exception as error:
            LOGGER.exception("run %s failed", run.id, extra={"run": run.id})
            runtime.telemetry.went_wrong(error)
            await _give_up(state, recorder, error)
            return True
        finally:
            if recorder.outcome:
                seconds = seconds_between(run.started, runtime.clock()) or 0.0
                runtime.telemetry.ended(run.agent, recorder.outcome, seconds)
            await recorder.close()


async def _give_up(state: RunState | None, recorder: Recorder, error: Exception) -> None:
    """End the run with what it was asked, if that can be stored; else without: a run must end."""
    try:
        await give_up(state or recorder, error)
    except (LeaseLost, StoreBusy, StoreDown):
        raise
    except Exception:
        LOGGER.exception("what run %s was asked cannot be stored", recorder.run, extra={"run": recorder.run})
        await give_up(recorder, error)


def _check(state: RunState) -> None:
    """A run nobody can or should work on is given up."""
    if state.run.agent not in state.runtime.agents:
        raise RunGivenUp(NO_AGENT.format(name=state.run.agent))
    if state.run.losses >= state.agent.limits.claims:
        raise RunGivenUp(TOO_OFTEN.format(count=state.run.losses))


async def _loop(state: RunState) -> bool:
    while True:
        if state.outcome or state.signal.leaving.is_set():
            return state.outcome is not None
        match next_step(state.log, state.snapshot()):
            case CallModel():
                await _unless_stopped(state, call_model(state))
            case RunTools() as step:
                await _unless_stopped(state, run_tools(state, step))
            case Compact():
                await _unless_stopped(state, summarise(state))
            case WaitForClient(calls=calls):
                if not await send_back_bad_calls(state, calls):
                    return await wait_for_client(state, calls)
            case Finished(outcome="done") if wants_name(state):
                await _unless_stopped(state, name_thread(state))
            case Finished(outcome=outcome):
                return await finish(state, outcome)


async def _unless_stopped(state: RunState, step: Coroutine[object, object, None]) -> None:
    """Do a step, unless the run is cancelled or its time is up: then it ends at once, and keeps what it has."""
    doing = asyncio.create_task(step)
    try:
        if not await is_done_in_time(state, doing):
            state.broken_off = True
            doing.cancel()
            await asyncio.wait((doing,))
        if not doing.cancelled():
            doing.result()
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
