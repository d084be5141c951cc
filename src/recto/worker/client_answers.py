"""A client that answers in the place of a tool: the tool acts on that answer, and its result is what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace

from recto.page import Entry, ToolCall, ToolMessage, view
from recto.page.canonical import load_object
from recto.page.enter import pending_calls
from recto.page.events import Event
from recto.page.messages import texts_of
from recto.page.ui_told import ui_events
from recto.tools.ports import ToolResult, tell_nobody
from recto.tools.registry import Registry
from recto.worker.acting import act
from recto.worker.desk import Desk
from recto.worker.in_time import is_done_in_time


async def with_answers(desk: Desk, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], list[Event]]:
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


async def _acted_on(desk: Desk, answer: ToolMessage, call: ToolCall) -> ToolMessage | None:
    """The result of the tool that a client answered for. An answer that is no object is left as it is."""
    tool, text = desk.tools.get(call.name), "\n".join(texts_of(answer))
    if tool is None or not tool.by_client or answer.error or load_object(text) is None:
        return None
    if call.runner == "client":
        # It was made of a tool of the client's, which this agent's only has the name of.
        return None
    # Whatever stage the thread is on: the call was made, and is waited for.
    acting = act(desk, replace(call, arguments=text), Registry((tool,)), tell_nobody)
    result = await _unless_stopped(desk, acting)
    return replace(answer, parts=result.parts, error=result.error) if result else None


async def _unless_stopped(desk: Desk, acting: Coroutine[object, object, ToolResult]) -> ToolResult | None:
    """What the tool answers; None where the run is to end before: the answer is kept as it came."""
    doing = asyncio.create_task(acting)
    try:
        return doing.result() if await is_done_in_time(desk, doing) else None
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
