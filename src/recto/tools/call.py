"""One call of one tool: found by name, held to its time, its answer bounded. Only a cancel is raised."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeAlias

from recto.conversation.json import scrub
from recto.conversation.messages import Text, ToolCall, ToolPart
from recto.errors import ToolError
from recto.tools.ports import LIMIT_CHARACTERS, LIMIT_SECONDS, Tool, ToolContext, ToolResult

FAILED, TIMEOUT, UNKNOWN_TOOL = "failed", "timeout", "unknown_tool"
CHANGED = "The tool {name} that you called is gone; another goes by that name now. Call it again if you still need it."
NAME_SHOWN = 100
# How long a cancelled tool may clean up. Cancelling a run and stopping the server wait this long, and no longer.
CLEANING_SECONDS = 1.0
# Below this the mark would have no room.
LEAST_CHARACTERS = 200
MARK = "\n[{count} of {total} characters left out here. Ask for less at a time: a range, a filter, fewer items.]\n"

Acting: TypeAlias = "asyncio.Task[ToolResult]"

_log = logging.getLogger("recto.tools")
# The loop itself holds tasks weakly.
_left: set[Acting] = set()


@dataclass(frozen=True, kw_only=True)
class ToolLimits:
    """How long a tool may take, how much it may answer, and how long it may clean up once it is cancelled."""

    seconds: float = LIMIT_SECONDS
    characters: int = LIMIT_CHARACTERS
    cleaning_seconds: float = CLEANING_SECONDS


LIMITS = ToolLimits()


async def call_tool(
    tools: Mapping[str, Tool],
    call: ToolCall,
    context: ToolContext,
    limits: ToolLimits = LIMITS,
    others: Collection[str] = (),
) -> ToolResult:
    """What the tool answers, or what the model has to know when it could not.

    `others` are tools that the model was offered too, and somebody else runs.
    """
    tool = tools.get(call.name)
    bounded = replace(context, characters=max(limits.characters, LEAST_CHARACTERS), seconds=limits.seconds)
    result = _unknown(call.name, tools, others) if tool is None else await _act(tool, call, bounded, limits)
    return bound(result, limit_characters=limits.characters)


def _unknown(name: str, tools: Mapping[str, Tool], others: Collection[str]) -> ToolResult:
    if name in others:
        return text_result(CHANGED.format(name=name), UNKNOWN_TOOL)
    names = sorted({*(known for known, tool in tools.items() if tool.is_offered), *others})
    close = get_close_matches(name[:NAME_SHOWN], names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return text_result(
        f"There is no tool {name[:NAME_SHOWN]!r}.{hint} Known tools: {', '.join(names) or 'none'}.", UNKNOWN_TOOL
    )


async def _act(tool: Tool, call: ToolCall, context: ToolContext, limits: ToolLimits) -> ToolResult:
    async def acting() -> ToolResult:
        return await tool.act(call.arguments, context)

    # A task of its own: a tool may swallow the cancel, and whoever waits for it must not be held up by that.
    task = asyncio.create_task(catch_tool_errors(tool.name, acting()))
    try:
        ended, _ = await asyncio.wait((task,), timeout=limits.seconds)
    finally:
        await _cancel(tool.name, task, limits.cleaning_seconds)
    if not ended:
        text = f"{tool.name} took longer than {limits.seconds:g} seconds and was stopped."
        text = f"{text} It may have done part of its work."
        return text_result(f"{text} Look at what is there before trying again, and ask for less.", TIMEOUT)
    return text_result(f"{tool.name} failed: it cancelled itself.", FAILED) if task.cancelled() else task.result()


async def _cancel(name: str, acting: Acting, seconds: float) -> None:
    """Cancel a tool that is still at work, and wait until it has ended or its moment is over."""
    if acting.done():
        return
    acting.cancel()
    try:
        await asyncio.wait((acting,), timeout=seconds)
    finally:
        if not acting.done():
            _abandon(name, acting)


def _abandon(name: str, acting: Acting) -> None:
    _log.warning("Tool %s was cancelled and does not end. It is left behind, and what it answers is not read.", name)
    _left.add(acting)
    acting.add_done_callback(_forget)
    # A loop that closes waits for all of its tasks, however long they take, so it must not know of this one.
    # The function is documented, for those who extend asyncio.
    asyncio._unregister_task(acting)


def _forget(acting: Acting) -> None:
    _left.discard(acting)
    if not acting.cancelled():
        # Asked for, so that the loop does not report it as never seen.
        acting.exception()


async def catch_tool_errors(name: str, answer: Awaitable[ToolResult]) -> ToolResult:
    """What the tool answered, or what went wrong as a result. Only a cancel passes through."""
    try:
        return await answer
    except ToolError as error:
        return text_result(str(error), error.status)
    # The one place that catches everything, an exit too: no tool may end the run or the server it runs in.
    except (Exception, SystemExit) as error:
        _log.exception("Tool %s failed.", name)
        problem = ": ".join(filter(None, (type(error).__name__, str(error))))
        return text_result(f"{name} failed: {problem}", FAILED)


def text_result(text: str, error: str | None = None) -> ToolResult:
    """A result of words."""
    return ToolResult(parts=(Text(text=text),), error=error)


def bound(result: ToolResult, *, limit_characters: int = LIMIT_CHARACTERS) -> ToolResult:
    """The result with at most so many characters of text: head and tail stay, files are untouched."""
    parts = tuple(map(_scrubbed, result.parts))
    total = sum(len(part.text) for part in parts if isinstance(part, Text))
    limit = max(limit_characters, LEAST_CHARACTERS)
    if total > limit:
        parts = tuple(_cut(parts, total, limit))
    return result if parts == result.parts else replace(result, parts=parts)


def _scrubbed(part: ToolPart) -> ToolPart:
    if not isinstance(part, Text):
        return part
    text = scrub(part.text)
    return part if text == part.text else replace(part, text=text)


def _cut(parts: Sequence[ToolPart], total: int, limit: int) -> Iterator[ToolPart]:
    """The parts without the characters from `start` to `end`, counted over all texts, and the mark in their place."""
    room = limit - len(MARK.format(count=total, total=total))
    start = room - room // 2
    end = total - room // 2
    mark = MARK.format(count=end - start, total=total)
    offset = 0
    for part in parts:
        if not isinstance(part, Text):
            yield part
            continue
        head = part.text[: max(start - offset, 0)]
        tail = part.text[max(end - offset, 0) :]
        starts_here = offset <= start < offset + len(part.text)
        offset += len(part.text)
        if offset <= start:
            yield part
        elif starts_here:
            yield replace(part, text=head + mark + tail)
        elif tail:
            yield replace(part, text=tail)
