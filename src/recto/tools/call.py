"""One call of one tool: found by name, held to its time, its answer bounded. Never raises but for a cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from recto.page.messages import ToolCall
from recto.tools.bound import LEAST_CHARACTERS, bound
from recto.tools.leave import leave
from recto.tools.ports import LIMIT_CHARACTERS, Tool, ToolContext, ToolResult
from recto.tools.wall import FAILED, behind_wall, said

UNKNOWN_TOOL = "unknown_tool"
TIMEOUT = "timeout"
CHANGED = "The tool {name} that you called is gone; another goes by that name now. Call it again if you still need it."
NAME_SHOWN = 100


@dataclass(frozen=True, kw_only=True)
class ToolLimits:
    """How long a tool may take, and how much it may answer."""

    seconds: float = 120
    characters: int = LIMIT_CHARACTERS


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
    bounded = replace(context, characters=max(limits.characters, LEAST_CHARACTERS))
    result = _unknown(call.name, tools, others) if tool is None else await _act(tool, call, bounded, limits.seconds)
    return bound(result, limit_characters=limits.characters)


def _unknown(name: str, tools: Mapping[str, Tool], others: Collection[str]) -> ToolResult:
    if name in others:
        return said(CHANGED.format(name=name), UNKNOWN_TOOL)
    names = sorted({*(known for known, tool in tools.items() if tool.is_offered), *others})
    close = get_close_matches(name[:NAME_SHOWN], names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return said(
        f"There is no tool {name[:NAME_SHOWN]!r}.{hint} Known tools: {', '.join(names) or 'none'}.", UNKNOWN_TOOL
    )


async def _act(tool: Tool, call: ToolCall, context: ToolContext, seconds: float) -> ToolResult:
    async def acting() -> ToolResult:
        return await tool.act(call.arguments, context)

    # A task of its own: a tool may swallow the cancel, and whoever waits for it must not be held up by that.
    task = asyncio.create_task(behind_wall(tool.name, acting()))
    try:
        ended, _ = await asyncio.wait((task,), timeout=seconds)
    finally:
        await leave(tool.name, task)
    if not ended:
        text = f"{tool.name} took longer than {seconds:g} seconds and was stopped. It may have done part of its work."
        return said(f"{text} Look at what is there before trying again, and ask for less.", TIMEOUT)
    return said(f"{tool.name} failed: it cancelled itself.", FAILED) if task.cancelled() else task.result()
