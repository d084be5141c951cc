"""The skills of a run's agent, for the tools that take one up and read its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from recto.agents.profile_schema import check_profile
from recto.config.checked import nearest
from recto.conversation.input_files import arguments_for
from recto.conversation.json import Json
from recto.conversation.log import View, view
from recto.conversation.messages import AssistantMessage, ToolCall
from recto.errors import Refused, ToolError, WireError
from recto.skills.bundled import read_bundled
from recto.skills.expert import missing_for
from recto.skills.skill import CORE, Skill
from recto.store.ports import Lease
from recto.store.store import Store
from recto.store.users.profiles import ProfileChange
from recto.tools.call import ToolLimits, call_tool
from recto.tools.ports import Activation, ReportProgress, Tool, ToolContext, ToolResult
from recto.tools.registry import Registry
from recto.tools.workspace.workspaces import workspace_of
from recto.worker.context.prompt_context import offered, skill_of
from recto.worker.run_state import RunState


async def act(desk: RunState, call: ToolCall, tools: Registry, tell: ReportProgress) -> ToolResult:
    """Have the tool act that a call names, if it is among those that may be called."""
    limits = desk.agent.limits
    bounds = ToolLimits(seconds=limits.tool_seconds, characters=limits.tool_characters)
    asked, context = _with_urls(desk, tools.get(call.name), call), context_of(desk, call, tell)
    return await call_tool(tools, asked, context, bounds, [brought.name for brought in desk.input.tools])


def tools_of_reply(desk: RunState) -> Registry:
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


def context_of(desk: RunState, call: ToolCall, tell: ReportProgress) -> ToolContext:
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
        report=tell,
        profile=profile,
        skills=SkillsOfRun(desk=desk) if desk.agent.skills else None,
        tier=desk.run.tier,
        locale=desk.agent.locale,
    )


def _with_urls(desk: RunState, tool: Tool | None, call: ToolCall) -> ToolCall:
    """A call as a tool that acts elsewhere gets it: urls in the place of file ids (F8). The log keeps the ids."""
    if not (tool and tool.is_external):
        return call
    urls = desk.files.fresh_urls(desk.shop.clock())
    return replace(call, arguments=arguments_for(call.name, call.arguments, urls))


@dataclass(frozen=True, kw_only=True)
class UserProfile:
    """The profile of one user, for a run that is held by a lease: who has lost it changes nothing.

    `changed` is told when something of it is not what it was.
    """

    store: Store
    owner: str
    schema: str | None
    clock: Callable[[], datetime]
    limit_bytes: int
    changed: Callable[[], None]
    lease: Lease

    async def fields(self, *names: str) -> Mapping[str, Json]:
        """Fields by name; those that are not there are left out."""
        return await self.store.profile_fields(self.owner, names)

    async def change(self, field: str, value: Json) -> None:
        """Keep a field, in the place of what it was; None forgets it."""
        await self._write(
            ProfileChange(fields={field: value}, replaces=True, check=self._check, lease=self.lease), field
        )

    def _check(self, fields: Mapping[str, Json]) -> None:
        problem = check_profile(fields, self.schema) if self.schema else None
        if problem:
            raise Refused(problem, where="profile")

    async def skill_data(self, skill: str) -> Json:
        """What a skill has kept; None: nothing."""
        return await self.store.skill_data(self.owner, skill)

    async def keep(self, skill: str, data: Json) -> None:
        """Have a skill keep this; None forgets it."""
        change = ProfileChange(skill_data={skill: data}, replaces=True, lease=self.lease)
        await self._write(change, f"what {skill} found")

    async def _write(self, change: ProfileChange, what: str) -> None:
        try:
            await self.store.change_profile(self.owner, change, self.clock(), self.limit_bytes)
        except (Refused, WireError) as error:
            raise ToolError(f"{what[:1].upper()}{what[1:]} cannot be kept: {error}") from error
        self.changed()


SHOWN = 64
NO_SKILL = "There is no skill {name!r}{known}."
NO_FILES = "No skill is active, so there are no files to read. Take one up with use_skill first."


@dataclass(frozen=True, kw_only=True)
class SkillsOfRun:
    """What a run's tools may do with its agent's skills. What is looked up for a skill, its first page has."""

    desk: RunState

    @property
    def names(self) -> Sequence[str]:
        """What may be taken up now: leaving a skill is for who has one."""
        return (*self.desk.agent.skills, *((CORE,) if self.desk.skill else ()))

    async def activate(self, skill: str, scenario: str | None) -> Activation:
        """Look up what the skill needs to know."""
        if skill not in self.names:
            raise ToolError(NO_SKILL.format(name=skill[:SHOWN], known=nearest(skill[:SHOWN], self.names)))
        if skill == CORE:
            return Activation(skill=None)
        found = self.desk.agent.skills[skill]
        known = await self.desk.know(found, scenario)
        missing = missing_for(found, known)
        return Activation(skill=skill, scenario=known.scenario, missing=missing, collect_tool=_collect(found, missing))

    async def read(self, path: str) -> bytes:
        """A file of the active skill's folder."""
        skill = self.desk.skill
        if skill is None:
            raise ToolError(NO_FILES)
        return await asyncio.to_thread(partial(read_bundled, skill, path))


def _collect(skill: Skill, missing: Sequence[str]) -> str:
    return skill.collect_tool if missing else ""
