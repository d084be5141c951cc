"""One tool call: lookup by name, time limit, bounded result. Errors become results; only a cancel is raised."""

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
# How long a cancelled tool may clean up. Cancelling a run and stopping the server wait no longer.
CLEANUP_SECONDS = 1.0
# Lower bound of the character limit, so that the mark fits.
LEAST_CHARACTERS = 200
MARK = "\n[{count} of {total} characters left out here. Ask for less at a time: a range, a filter, fewer items.]\n"

ToolTask: TypeAlias = "asyncio.Task[ToolResult]"

_log = logging.getLogger("recto.tools")
# Cancelled tasks that still run. The event loop holds only weak references to them.
_abandoned: set[ToolTask] = set()


@dataclass(frozen=True, kw_only=True)
class ToolLimits:
    """Limits of a tool call: run time, result characters, clean-up time after a cancel."""

    seconds: float = LIMIT_SECONDS
    characters: int = LIMIT_CHARACTERS
    cleanup_seconds: float = CLEANUP_SECONDS


LIMITS = ToolLimits()


async def call_tool(
    tools: Mapping[str, Tool],
    call: ToolCall,
    context: ToolContext,
    limits: ToolLimits = LIMITS,
    others: Collection[str] = (),
) -> ToolResult:
    """Return the result of a call, or an error result for the model. `others` are tools that the client runs."""
    if tool := tools.get(call.name):
        bounded = replace(context, characters=max(limits.characters, LEAST_CHARACTERS), seconds=limits.seconds)
        result = await _run_tool(tool, call, bounded, limits)
    elif call.name in others:
        result = text_result(CHANGED.format(name=call.name), UNKNOWN_TOOL)
    else:
        name, names = call.name[:NAME_SHOWN], sorted({*(key for key, one in tools.items() if one.is_offered), *others})
        close = get_close_matches(name, names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        text = f"There is no tool {name!r}.{hint} Known tools: {', '.join(names) or 'none'}."
        result = text_result(text, UNKNOWN_TOOL)
    return bound_result(result, limit_characters=limits.characters)


async def _run_tool(tool: Tool, call: ToolCall, context: ToolContext, limits: ToolLimits) -> ToolResult:
    async def guarded_act() -> ToolResult:
        return await tool.act(call.arguments, context)

    # Run the tool in its own task, so that a tool that swallows the cancel does not block the caller.
    task = asyncio.create_task(catch_tool_errors(tool.name, guarded_act()))
    try:
        done, _ = await asyncio.wait((task,), timeout=limits.seconds)
    finally:
        await _cancel(tool.name, task, limits.cleanup_seconds)
    if not done:
        text = f"{tool.name} took longer than {limits.seconds:g} seconds and was stopped."
        text = f"{text} It may have done part of its work."
        return text_result(f"{text} Look at what is there before trying again, and ask for less.", TIMEOUT)
    return text_result(f"{tool.name} failed: it cancelled itself.", FAILED) if task.cancelled() else task.result()


async def _cancel(name: str, task: ToolTask, seconds: float) -> None:
    """Cancel a running tool and wait for its end, at most `seconds`."""
    if task.done():
        return
    task.cancel()
    try:
        await asyncio.wait((task,), timeout=seconds)
    finally:
        if not task.done():
            _log.warning(
                "Tool %s was cancelled and does not end. It is left behind, and what it answers is not read.", name
            )
            _abandoned.add(task)
            task.add_done_callback(_forget_task)
            # Unregister the task, because a closing loop waits for all of its tasks without a limit. asyncio documents
            # this function for extensions.
            asyncio._unregister_task(task)


def _forget_task(task: ToolTask) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        # Retrieve the exception, so that the loop does not report it as never retrieved.
        task.exception()


async def catch_tool_errors(name: str, answer: Awaitable[ToolResult]) -> ToolResult:
    """Return the tool's result, or an error result if it raises. Only a cancel passes through."""
    try:
        return await answer
    except ToolError as error:
        return text_result(str(error), error.status)
    # Catch everything, SystemExit included, because no tool may end the run or the server.
    except (Exception, SystemExit) as error:
        _log.exception("Tool %s failed.", name)
        problem = ": ".join(filter(None, (type(error).__name__, str(error))))
        return text_result(f"{name} failed: {problem}", FAILED)


def text_result(text: str, error: str | None = None) -> ToolResult:
    """Return a text-only result."""
    return ToolResult(parts=(Text(text=text),), error=error)


def bound_result(result: ToolResult, *, limit_characters: int = LIMIT_CHARACTERS) -> ToolResult:
    """Cut the middle out of a result's text if it is too long. Files stay unchanged."""
    parts = tuple([replace(one, text=scrub(one.text)) if isinstance(one, Text) else one for one in result.parts])
    total = sum(len(part.text) for part in parts if isinstance(part, Text))
    limit = max(limit_characters, LEAST_CHARACTERS)
    if total > limit:
        parts = tuple(_cut(parts, total, limit))
    return result if parts == result.parts else replace(result, parts=parts)


def _cut(parts: Sequence[ToolPart], total: int, limit: int) -> Iterator[ToolPart]:
    """Replace the middle of the joined texts with the mark."""
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
