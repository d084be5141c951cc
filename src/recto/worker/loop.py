"""The loop: take up a claimed run, do what is next until nothing is. Everything it knows is in the log and the row."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from recto.engine.ports import Signal
from recto.errors import RectoError, StoreError
from recto.models.ports import Usage
from recto.page import CallModel, Compact, Finished, RunTools, WaitForClient, next_step
from recto.page.canonical import load, load_object
from recto.page.discard import discard_lost
from recto.page.enter import Entering, enter
from recto.page.events import Event, RunStarted
from recto.page.wire.agui_input import decode_input
from recto.store.ports import Change, Lease, StoredRun
from recto.tools.registry import Registry
from recto.worker.call_model import call_model
from recto.worker.desk import Desk
from recto.worker.finish import finish, give_up, wait_for_client
from recto.worker.recorder import Recorder
from recto.worker.run_tools import run_tools
from recto.worker.shelf import Volume
from recto.worker.summarise import summarise
from recto.worker.workshop import Workshop

LOGGER = logging.getLogger("recto.worker")
TAKEN_OVER = "The server stopped while this was being said; it is said again."
TOO_OFTEN = "This run was taken up {count} times and never came to its end, so it is given up. What it did is kept."
PAGE = 1_000


async def work(shop: Workshop, run: StoredRun, signal: Signal) -> bool:
    """Work on a run until it ends (True) or has to be handed back (False)."""
    lease = Lease(run=run.id, thread=run.thread, fence=run.fence)
    recorder = Recorder(shop.store, shop.hub, lease, clock=shop.clock, settings=shop.recorder)
    with shop.hub.writing(run.id):
        try:
            desk = await _sit_down(shop, run, signal, recorder)
            return await _loop(desk)
        except StoreError:
            raise
        except Exception as error:
            LOGGER.exception("run %s failed", run.id)
            await give_up(recorder, run, error if isinstance(error, RectoError) else None)
            return True
        finally:
            await recorder.close()


async def _loop(desk: Desk) -> bool:
    while True:
        if desk.ended or desk.signal.leaving.is_set():
            return desk.ended
        match next_step(desk.log, desk.state()):
            case CallModel():
                await _unless_stopped(desk, call_model(desk))
            case RunTools() as step:
                await _unless_stopped(desk, run_tools(desk, step))
            case Compact():
                await _unless_stopped(desk, summarise(desk))
            case WaitForClient(calls=calls):
                return await wait_for_client(desk, calls)
            case Finished(outcome=outcome):
                return await finish(desk, outcome)
        desk.shop.shelf.put(desk.run.thread, Volume(entries=desk.log, last=desk.last))


async def _unless_stopped(desk: Desk, step: Coroutine[object, object, None]) -> None:
    """Do a step, unless the run is cancelled or its time is up: then it ends at once, and keeps what it has."""
    doing = asyncio.ensure_future(step)
    cancelled = asyncio.ensure_future(desk.signal.cancelled.wait())
    try:
        await asyncio.wait((doing, cancelled), timeout=desk.seconds_left, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            desk.broken_off = True
            doing.cancel()
            await asyncio.wait((doing,))
        if not doing.cancelled():
            doing.result()
    finally:
        cancelled.cancel()
        doing.cancel()
        await asyncio.gather(doing, cancelled, return_exceptions=True)


async def _sit_down(shop: Workshop, run: StoredRun, signal: Signal, recorder: Recorder) -> Desk:
    """Observe: the log, the input, what readers have seen. Then the input enters the log, once."""
    shop.reached("claimed")
    if run.fence > shop.agent(run.agent).limits.claims:
        raise RectoError(TOO_OFTEN.format(count=run.fence - 1))
    agent, volume = shop.agent(run.agent), await shop.shelf.take(run.thread, run.last_seq)
    desk = Desk(
        shop=shop,
        run=run,
        input=decode_input(load(run.input)),
        agent=agent,
        tools=shop.tools.get(agent.name, Registry()),
        signal=signal,
        recorder=recorder,
        log=volume.entries,
        failures=run.failures,
        too_long=run.too_long,
        can_compact=run.can_compact,
        calls=run.calls,
        usage=_usage(run.usage),
        last=volume.last,
        problem=run.error,
    )
    events = await _take_over(desk) if run.last_event else [RunStarted(thread=run.thread, run=run.name)]
    entering = Entering(admitted=run.created, response_id=run.response_id, new_id=shop.new_id)
    entries = () if run.entered else enter(desk.log, desk.input.messages, entering)
    if events or not run.entered:
        desk.hold(Change(entries=entries, entered=True), events)
    shop.reached("entered")
    return desk


async def _take_over(desk: Desk) -> list[Event]:
    """What an earlier worker said and the log does not have is taken back, and its ids are not used again."""
    bodies: list[bytes] = []
    number = 0
    while found := await desk.shop.store.events(desk.run.id, number, PAGE):
        bodies += [event.body for event in found]
        number = found[-1].number
    for body in bodies:
        event = load_object(body) or {}
        desk.said |= {id for key in ("messageId", "parentMessageId") if isinstance(id := event.get(key), str)}
    return list(discard_lost(bodies, logged={entry.id for entry in desk.log}, reason=TAKEN_OVER))


def _usage(row: bytes | None) -> Usage:
    known = load_object(row) if row else None
    if known is None:
        return Usage()
    names = {"input": "inputTokens", "output": "outputTokens", "cached": "cachedInputTokens"}
    names |= {"cache_written": "cacheWriteInputTokens", "reasoning": "reasoningTokens"}
    return Usage(**{ours: value for ours, theirs in names.items() if isinstance(value := known.get(theirs), int)})
