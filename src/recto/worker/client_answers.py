"""A client that answers in the place of a tool: the tool acts on that answer, and its result is what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recto.page import Entry, ToolCall, ToolMessage, view
from recto.page.canonical import load_object
from recto.page.enter import pending_calls
from recto.page.events import Event
from recto.page.messages import texts_of
from recto.tools.ports import tell_nobody
from recto.worker.acting import act, tools_now
from recto.worker.answered import answered
from recto.worker.desk import Desk


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
        told += answered(message, desk.agent.locale) if message else ()
    return tuple(settled), told


async def _acted_on(desk: Desk, answer: ToolMessage, call: ToolCall) -> ToolMessage | None:
    """The result of the tool that a client answered for. An answer that is no object is left as it is."""
    tool, text = desk.tools.get(call.name), "\n".join(texts_of(answer))
    if tool is None or not tool.by_client or answer.error or load_object(text) is None:
        return None
    result = await act(desk, replace(call, arguments=text), await tools_now(desk), tell_nobody)
    return replace(answer, parts=result.parts, error=result.error)
