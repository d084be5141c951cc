"""A client that answers in the place of a tool: the tool acts on that answer, and its result is what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeGuard

from recto.agents.agent import CHAT, Agent
from recto.conversation.attachment import from_stored
from recto.conversation.events import CallAnswered, Event, RunStarted, discard_lost
from recto.conversation.input.input_rules import run_options
from recto.conversation.input.run_input import RunInput, decode_input
from recto.conversation.input.take_input import EXPIRED, AdmittedRun, pending_calls, take_input
from recto.conversation.json import load, load_object
from recto.conversation.log import Entry, SkillChanged, View, view
from recto.conversation.messages import ToolCall, ToolMessage, UserMessage, texts_of
from recto.conversation.ui.compile_ui import ui_events
from recto.engine.ports import Signal
from recto.store.ports import RunChange, StoredRun
from recto.tools.ports import ToolResult, report_nothing
from recto.tools.registry import Registry
from recto.worker.account import account_of
from recto.worker.context.thread_files import FileServices, ThreadFiles, has_files, load_thread_files
from recto.worker.recorder import Recorder
from recto.worker.run_state import RunState, is_done_in_time
from recto.worker.runtime import Runtime
from recto.worker.tools.tool_context import act

TAKEN_OVER = "The server stopped while this was being said; it is said again."
PAGE = 1_000
# What events name messages and calls by.
IDS = ("messageId", "parentMessageId", "toolCallId")
# What of `forwardedProps` belongs to a turn, not to each of its runs.
OF_TURN = ("timezone", "datasets", "voice_mode")


async def load_run(shop: Runtime, run: StoredRun, signal: Signal, recorder: Recorder) -> RunState:
    """Observe, and have the input ready to enter the log with the first write, once."""
    shop.reached("claimed")
    # An agent that is gone answers no more, but what it was asked is kept.
    agent = _for_tier(shop.agents.get(run.agent) or Agent(name=run.agent, prompt=CHAT.prompt), run.tier)
    model = shop.model_of(agent)
    volume = await shop.shelf.take(run.thread, run.last_seq, run.thread_created)
    desk = RunState(
        shop=shop,
        run=run,
        input=_input_of(run),
        agent=agent,
        model=model,
        tools=shop.tools.get(agent.name, Registry()),
        signal=signal,
        recorder=recorder,
        log=volume.entries,
        failures=run.failures,
        too_long=run.too_long,
        can_compact=run.can_compact,
        calls=run.calls,
        account=account_of(run.usage),
        # Models count differently: what one said of a page says nothing of another's.
        last=volume.last if volume.model == model.name else None,
        problem=run.error,
    )
    await _enter(desk)
    await _gather(desk)
    shop.reached("entered")
    return desk


async def _enter(desk: RunState) -> None:
    """Have what the client sent ready to enter the log, once; and tell readers what they have to know before."""
    run = desk.run
    started = RunStarted(thread=run.thread, run=run.name, parent=desk.input.parent)
    events = await _take_over(desk) if run.last_event else []
    # What an earlier worker told of its progress may have come before anything else was stored.
    events += [] if run.entered else [started]
    entering = _entering(desk)
    entries = () if run.entered else take_input(desk.log, desk.input.messages, entering)
    seen = view((*desk.log, *entries))
    # A call that the user has spoken past waits for nobody: the tool is whoever's it is in this run.
    desk.awaited = frozenset(call.name for call in pending_calls(seen, entering.own_tools))
    await _go_on_with_turn(desk, seen)
    entries, told = await with_answers(desk, entries)
    entries = (*entries, *(() if run.entered else _asked_for(desk)))
    events += [*told, *[_expired(entry) for entry in entries if _is_expired(entry)]]
    if events or not run.entered:
        desk.hold(RunChange(entries=entries, entered=True), events)


def _for_tier(agent: Agent, tier: str) -> Agent:
    return replace(agent, limits=agent.tiers[tier]) if tier in agent.tiers else agent


def _asked_for(desk: RunState) -> Iterator[SkillChanged]:
    """The skill a request asks for (S4). It wins over the thread's, and stands behind its user message.

    A scenario alone is one of the skill that is on; without such a skill it means nothing.
    """
    wishes, now = run_options(desk.input.props), view(desk.log).skill
    skill = desk.agent.skills.get((wishes.skill or (now.skill if now else None)) or "")
    scenario = next((one for one in skill.scenarios if one.name == wishes.scenario), None) if skill else None
    is_other = wishes.skill is not None and (now.skill if now else None) != (skill.name if skill else None)
    if is_other or scenario:
        chosen = scenario or (skill.scenario(None) if skill else None)
        name, at, id = chosen.name if chosen else None, desk.run.created, desk.shop.new_id()
        yield SkillChanged(id=id, time=at, skill=skill.name if skill else None, scenario=name)


def _is_expired(entry: Entry) -> TypeGuard[ToolMessage]:
    return isinstance(entry, ToolMessage) and entry.error == EXPIRED


def _input_of(run: StoredRun) -> RunInput:
    found = decode_input(load(run.input))
    return replace(found, messages=from_stored(found.messages))


async def _go_on_with_turn(desk: RunState, seen: View) -> None:
    """A run that goes on with a turn has its time zone and its datasets: they are the turn's (F1).

    The file ids it was admitted with were never shown, so they are taken back.
    """
    store, thread = desk.shop.store, desk.run.thread
    user = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
    opened = user.response_id if isinstance(user, UserMessage) else ""
    if opened in ("", desk.run.response_id):
        return
    if has_files(desk.input.messages):
        await store.forget_refs(thread, desk.run.response_id)
    opening = await store.opening_input(thread, opened)
    if opening is not None:
        own = {name: value for name, value in desk.input.props.items() if name not in OF_TURN}
        props = decode_input(load(opening)).props
        of_turn = {name: props[name] for name in OF_TURN if name in props}
        desk.input = replace(desk.input, props={**own, **of_turn})


async def _gather(desk: RunState) -> None:
    """Look up what of the thread and its user is neither in the log nor in the request."""
    shop, owner = desk.shop, desk.run.owner
    named = tuple(id.lower() for id in (*desk.agent.datasets, *run_options(desk.input.props).datasets))
    if named:
        # Asked again: between admission and now somebody may have been shut out (F10).
        desk.datasets = tuple(await shop.store.usable_datasets(owner, named))
    if shop.cabinet:
        may_have = desk.agent.file_input.is_on or has_files(desk.log)
        desk.files = await _files(desk, shop.cabinet) if may_have else ThreadFiles(cabinet=shop.cabinet)


async def _files(desk: RunState, cabinet: FileServices) -> ThreadFiles:
    refs = await desk.shop.store.file_refs(desk.run.thread)
    seen = cabinet if desk.target.sees_images else replace(cabinet, pictures=None)
    return await load_thread_files(seen, refs, desk.log, desk.shop.clock()) if refs else ThreadFiles(cabinet=cabinet)


def _entering(desk: RunState) -> AdmittedRun:
    return AdmittedRun(
        admitted=desk.run.created,
        response_id=desk.run.response_id,
        turn_id=desk.run.id,
        new_id=desk.shop.new_id,
        own_tools=desk.own_tools,
        patience=timedelta(seconds=desk.agent.limits.client_seconds),
    )


async def _take_over(desk: RunState) -> list[Event]:
    """What an earlier worker said and the log does not have is taken back, and its ids are not used again."""
    bodies: list[bytes] = []
    number = 0
    while found := await desk.shop.store.events(desk.run.id, number, PAGE):
        bodies += [event.body for event in found]
        number = found[-1].number
    for body in bodies:
        event = load_object(body) or {}
        desk.said |= {id for key in IDS if isinstance(id := event.get(key), str)}
    return list(discard_lost(bodies, logged={entry.id for entry in desk.log}, reason=TAKEN_OVER))


def _expired(result: ToolMessage) -> CallAnswered:
    """Readers are told that a call of the client's was answered by us."""
    return CallAnswered(message=result.id, call=result.tool_call_id, content="\n".join(texts_of(result)))


async def with_answers(desk: RunState, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], list[Event]]:
    """What enters the log, and what readers are told of it.

    Acting twice does no harm to such tools, so a worker that is lost here loses nothing.
    """
    calls = {call.id: call for call in pending_calls(view(desk.log), desk.own_tools)}
    settled, told = list[Entry](), list[Event]()
    for entry in entries:
        call = calls.get(entry.tool_call_id) if isinstance(entry, ToolMessage) else None
        message = await _acted_on(desk, entry, call) if isinstance(entry, ToolMessage) and call else None
        settled.append(message or entry)
        # Clients have the message they sent: they are told how what became of it may be shown, not the same again.
        told += ui_events(message.id, "\n".join(texts_of(message)), desk.agent.locale) if message else ()
    return tuple(settled), told


async def _acted_on(desk: RunState, answer: ToolMessage, call: ToolCall) -> ToolMessage | None:
    """The result of the tool that a client answered for. An answer that is no object is left as it is."""
    tool, text = desk.tools.get(call.name), "\n".join(texts_of(answer))
    if tool is None or not tool.by_client or answer.error or load_object(text) is None:
        return None
    if call.runner == "client":
        # It was made of a tool of the client's, which this agent's only has the name of.
        return None
    # Whatever stage the thread is on: the call was made, and is waited for.
    acting = act(desk, replace(call, arguments=text), Registry((tool,)), report_nothing)
    result = await _unless_stopped(desk, acting)
    return replace(answer, parts=result.parts, error=result.error) if result else None


async def _unless_stopped(desk: RunState, acting: Coroutine[object, object, ToolResult]) -> ToolResult | None:
    """What the tool answers; None where the run is to end before: the answer is kept as it came."""
    doing = asyncio.create_task(acting)
    try:
        return doing.result() if await is_done_in_time(desk, doing) else None
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
