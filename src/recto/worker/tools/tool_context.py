"""What a tool may know and do of the run it acts for: its context, the user's profile, the agent's skills."""

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

SHOWN = 64
NO_SKILL = "There is no skill {name!r}{known}."
NO_FILES = "No skill is active, so there are no files to read. Take one up with use_skill first."


async def act(state: RunState, call: ToolCall, tools: Registry, report: ReportProgress) -> ToolResult:
    """Have the tool act that a call names, if it is among those that may be called."""
    limits = state.agent.limits
    bounds = ToolLimits(seconds=limits.tool_seconds, characters=limits.tool_characters)
    asked, context = _with_urls(state, tools.get(call.name), call), _context_of(state, call, report)
    return await call_tool(tools, asked, context, bounds, [brought.name for brought in state.input.tools])


def _with_urls(state: RunState, tool: Tool | None, call: ToolCall) -> ToolCall:
    """A call as a tool that acts elsewhere gets it: urls in the place of file ids (F8). The log keeps the ids."""
    if not (tool and tool.mark.external):
        return call
    urls = state.files.fresh_urls(state.runtime.clock())
    return replace(call, arguments=arguments_for(call.name, call.arguments, urls))


def tools_of_reply(state: RunState) -> Registry:
    """The tools that the newest reply was offered, whatever one of its calls has changed since. Hidden ones are always.

    So a worker that takes the reply over after a crash finds the tools it was asked for.
    """
    seen = view(state.log)
    places = (
        place for place in range(len(seen.entries) - 1, -1, -1) if isinstance(seen.entries[place], AssistantMessage)
    )
    before = View(entries=seen.entries[: next(places, len(seen.entries))])
    names = offered(state.agent, skill_of(state.agent.skills, before.skill), state.tools)
    return Registry([tool for name, tool in state.tools.items() if name in names or not tool.is_offered])


def _context_of(state: RunState, call: ToolCall, report: ReportProgress) -> ToolContext:
    """What a tool may know of the run it acts for."""
    profile = UserProfile(
        store=state.runtime.store,
        owner=state.run.owner,
        schema=state.agent.profile_schema,
        clock=state.runtime.clock,
        limit_bytes=state.runtime.profile_bytes,
        changed=state.forget_known,
        lease=state.lease,
    )
    seen = view(state.log)
    reply = next((entry for entry in reversed(seen.messages) if isinstance(entry, AssistantMessage)), None)
    return ToolContext(
        owner=state.run.owner,
        thread=state.run.thread,
        run=state.run.id,
        call=call.id,
        message=reply.id if reply else "",
        now=state.runtime.clock(),
        zone=state.zone,
        props=state.input.props,
        files=state.tool_files(),
        workspace=workspace_of(state.runtime.workspaces, state.run.thread) if state.runtime.workspaces else None,
        workspace_bytes=state.runtime.workspace_bytes,
        report=report,
        profile=profile,
        skills=SkillsOfRun(state=state) if state.agent.skills else None,
        tier=state.run.tier,
        locale=state.agent.locale,
    )


@dataclass(frozen=True, kw_only=True)
class UserProfile:
    """The profile of one user, for a run that is held by a lease: who has lost it changes nothing.

    `changed` is called when something of it is not what it was.
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


@dataclass(frozen=True, kw_only=True)
class SkillsOfRun:
    """What a run's tools may do with its agent's skills. What is looked up for a skill, its first page has."""

    state: RunState

    @property
    def names(self) -> Sequence[str]:
        """What may be taken up now: leaving a skill is for who has one."""
        return (*self.state.agent.skills, *((CORE,) if self.state.skill else ()))

    async def activate(self, skill: str, scenario: str | None) -> Activation:
        """Look up what the skill needs to know."""
        if skill not in self.names:
            raise ToolError(NO_SKILL.format(name=skill[:SHOWN], known=nearest(skill[:SHOWN], self.names)))
        if skill == CORE:
            return Activation(skill=None)
        found = self.state.agent.skills[skill]
        known = await self.state.know(found, scenario)
        missing = missing_for(found, known)
        return Activation(skill=skill, scenario=known.scenario, missing=missing, collect_tool=_collect(found, missing))

    async def read(self, path: str) -> bytes:
        """A file of the active skill's folder."""
        skill = self.state.skill
        if skill is None:
            raise ToolError(NO_FILES)
        return await asyncio.to_thread(partial(read_bundled, skill, path))


def _collect(skill: Skill, missing: Sequence[str]) -> str:
    return skill.collect_tool if missing else ""
