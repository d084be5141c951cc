"""What a tool of a run acts with: its context, and the tools that may be called now."""

from __future__ import annotations

from dataclasses import replace

from recto.page import AssistantMessage, ToolCall, View, view
from recto.page.input_files import arguments_for
from recto.tools.call import ToolLimits, call_tool
from recto.tools.ports import Tell, Tool, ToolContext, ToolResult
from recto.tools.registry import Registry
from recto.tools.workspaces import workspace_of
from recto.worker.desk import Desk
from recto.worker.profile import UserProfile
from recto.worker.skills_at_hand import SkillsOfRun
from recto.worker.staging import offered, skill_of


async def act(desk: Desk, call: ToolCall, tools: Registry, tell: Tell) -> ToolResult:
    """Have the tool act that a call names, if it is among those that may be called."""
    limits = desk.agent.limits
    bounds = ToolLimits(seconds=limits.tool_seconds, characters=limits.tool_characters)
    asked, context = _with_urls(desk, tools.get(call.name), call), context_of(desk, call, tell)
    return await call_tool(tools, asked, context, bounds, [brought.name for brought in desk.input.tools])


def tools_of_reply(desk: Desk) -> Registry:
    """The tools that the newest reply was offered, whatever one of its calls has changed since. Hidden ones are always.

    So a worker that takes the reply over after a crash finds the tools it was asked for.
    """
    seen = view(desk.log)
    places = (
        place for place in range(len(seen.entries) - 1, -1, -1) if isinstance(seen.entries[place], AssistantMessage)
    )
    before = View(entries=seen.entries[: next(places, len(seen.entries))])
    names = offered(desk.agent, skill_of(desk.agent.skills, before.skill), desk.tools)
    return Registry([tool for name, tool in desk.tools.items() if name in names or not tool.is_offered])


def context_of(desk: Desk, call: ToolCall, tell: Tell) -> ToolContext:
    """What a tool may know of the run it acts for."""
    profile = UserProfile(
        store=desk.shop.store,
        owner=desk.run.owner,
        schema=desk.agent.profile_schema,
        clock=desk.shop.clock,
        limit_bytes=desk.shop.profile_bytes,
        changed=desk.forget_known,
        lease=desk.lease,
    )
    seen = view(desk.log)
    reply = next((entry for entry in reversed(seen.messages) if isinstance(entry, AssistantMessage)), None)
    return ToolContext(
        owner=desk.run.owner,
        thread=desk.run.thread,
        run=desk.run.id,
        call=call.id,
        message=reply.id if reply else "",
        now=desk.shop.clock(),
        zone=desk.zone,
        props=desk.input.props,
        files=desk.at_hand(),
        workspace=workspace_of(desk.shop.workspaces, desk.run.thread) if desk.shop.workspaces else None,
        workspace_bytes=desk.shop.workspace_bytes,
        tell=tell,
        profile=profile,
        skills=SkillsOfRun(desk=desk) if desk.agent.skills else None,
        tier=desk.run.tier,
        locale=desk.agent.locale,
    )


def _with_urls(desk: Desk, tool: Tool | None, call: ToolCall) -> ToolCall:
    """A call as a tool that acts elsewhere gets it: urls in the place of file ids (F8). The log keeps the ids."""
    if not (tool and tool.is_external):
        return call
    urls = desk.files.fresh_urls(desk.shop.clock())
    return replace(call, arguments=arguments_for(call.name, call.arguments, urls))
