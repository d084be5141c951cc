"""What a tool may know and do of the run it acts for: its context, its log, the user's profile, the agent's skills."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from recto.agents.profile_schema import check_profile
from recto.config.checked import nearest
from recto.conversation.json import Json
from recto.conversation.log import Entry, View, view
from recto.conversation.message_files import arguments_for
from recto.conversation.messages import AssistantMessage, ToolCall
from recto.errors import Refused, ToolError, WireError
from recto.page.earlier_results import NotRecalled, Recalled, find_result
from recto.page.manifest import Recall
from recto.skills.bundled import read_bundled
from recto.skills.expert import missing_for
from recto.skills.skill import CORE, Skill
from recto.store.ports import Lease
from recto.store.store import Store
from recto.store.users.profiles import ProfileChange
from recto.tools.call import ToolLimits, call_tool
from recto.tools.ports import Activation, ReportProgress, ToolContext, ToolResult
from recto.tools.registry import Registry
from recto.worker.context.prompt_context import select_tools, find_skill
from recto.worker.log_cache import is_unread
from recto.worker.log_writer import LogWriter
from recto.worker.page_inputs import PageInputs
from recto.worker.run_spans import begin_tool, note_result
from recto.worker.run_state import LoadedRun
from recto.worker.tools.shared_state import SharedState

SHOWN = 64
NO_SKILL = "There is no skill {name!r}{known}."
NO_FILES = "No skill is active, so there are no files to read. Take one up with use_skill first."


async def execute(run: LoadedRun, call: ToolCall, tools: Registry, report: ReportProgress) -> ToolResult:
    """Have the tool act that a call names, if it is among those that may be called."""
    state = SharedState(run.writer, run.runtime.tools.state_bytes)
    limits, context = run.state.limits, replace(_context_of(run, call, report), state=state)
    bounds = ToolLimits(seconds=limits.tool_seconds, characters=limits.tool_characters)
    tool = tools.get(call.name)
    asked = replace_file_ids(call, run.inputs.files.fresh_urls(context.now)) if tool and tool.mark.external else call
    with begin_tool(run.span, call) as span:
        result = await call_tool(tools, asked, context, bounds, [brought.name for brought in run.inputs.request.tools])
        note_result(span, result)
    run.runtime.telemetry.record_tool_call(call.name if tool else None, result.error)
    return replace(result, changes=(*result.changes, *state.changes)) if state.changes else result


def replace_file_ids(call: ToolCall, urls: Mapping[str, str]) -> ToolCall:
    """A call as a tool that acts elsewhere gets it: urls in the place of file ids (F8). The log keeps the ids."""
    return replace(call, arguments=arguments_for(call.name, call.arguments, urls))


def find_tools_of_reply(inputs: PageInputs, log: Sequence[Entry]) -> Registry:
    """The tools that the newest reply was offered, whatever one of its calls has changed since. Hidden ones are always.

    So a worker that takes the reply over after a crash finds the tools it was asked for.
    """
    before = View(entries=_before_reply(log))
    names = select_tools(inputs.agent, find_skill(inputs.agent.skills, before.skill), inputs.tools)
    return Registry([tool for name, tool in inputs.tools.items() if name in names or not tool.is_offered])


def _before_reply(log: Sequence[Entry]) -> tuple[Entry, ...]:
    """What the newest reply was given in answer to: all that is in view before it."""
    entries = view(log).entries
    places = (place for place in range(len(entries) - 1, -1, -1) if isinstance(entries[place], AssistantMessage))
    return entries[: next(places, len(entries))]


def _context_of(run: LoadedRun, call: ToolCall, report: ReportProgress) -> ToolContext:
    """What a tool may know of the run it acts for."""
    runtime, inputs, row, log = run.runtime, run.inputs, run.state.row, run.writer.log
    profile = UserProfile(
        store=runtime.store,
        owner=row.owner,
        schema=inputs.agent.profile_schema,
        clock=runtime.clock,
        limit_bytes=runtime.tools.profile_bytes,
        changed=inputs.forget_known,
        lease=row.lease,
    )
    reply = view(log).reply
    return ToolContext(
        owner=row.owner,
        thread=row.thread,
        run=row.id,
        call=call.id,
        message=reply.id if reply else "",
        now=runtime.clock(),
        zone=inputs.zone,
        props=inputs.request.props,
        files=inputs.open_tool_files(log),
        workspace=inputs.workspace,
        terminal=runtime.tools.terminal,
        report=report,
        profile=profile,
        skills=SkillsOfRun(inputs=inputs, writer=run.writer) if inputs.agent.skills else None,
        log=LogOfRun(inputs=inputs, writer=run.writer),
        tier=row.tier,
        locale=inputs.agent.locale,
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
        return await self.store.users.read_fields(self.owner, names)

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
        return await self.store.users.read_skill_data(self.owner, skill)

    async def keep(self, skill: str, data: Json) -> None:
        """Have a skill keep this; None forgets it."""
        change = ProfileChange(skill_data={skill: data}, replaces=True, lease=self.lease)
        await self._write(change, f"what {skill} found")

    async def _write(self, change: ProfileChange, what: str) -> None:
        try:
            await self.store.users.change_profile(self.owner, change, self.clock(), self.limit_bytes)
        except (Refused, WireError) as error:
            raise ToolError(f"{what[:1].upper()}{what[1:]} cannot be kept: {error}") from error
        self.changed()


@dataclass(frozen=True, kw_only=True)
class LogOfRun:
    """The log as the reply that calls knew it, so that it is not counted by what the calls beside it bring."""

    inputs: PageInputs
    writer: LogWriter

    async def recall(self, query: Recall) -> Recalled | NotRecalled:
        """An earlier result. What was left in the store is read only where it may be there."""
        before = _before_reply(self.writer.log)
        facts = self.inputs.facts(before, await self.inputs.prompt_context(before))
        found = find_result(facts, query)
        if isinstance(found, Recalled) or not is_unread(before):
            return found
        return find_result(replace(facts, log=_before_reply(await self.writer.read_all())), query)


@dataclass(frozen=True, kw_only=True)
class SkillsOfRun:
    """What a run's tools may do with its agent's skills. What is looked up for a skill, its first page has."""

    inputs: PageInputs
    writer: LogWriter

    @property
    def names(self) -> Sequence[str]:
        """What may be taken up now: leaving a skill is for who has one."""
        return (*self.inputs.agent.skills, *((CORE,) if self.inputs.skill(self.writer.log) else ()))

    async def activate(self, skill: str, scenario: str | None) -> Activation:
        """Look up what the skill needs to know."""
        if skill not in self.names:
            raise ToolError(NO_SKILL.format(name=skill[:SHOWN], known=nearest(skill[:SHOWN], self.names)))
        if skill == CORE:
            return Activation(skill=None)
        found = self.inputs.agent.skills[skill]
        known = await self.inputs.know(found, scenario)
        missing = missing_for(found, known)
        return Activation(skill=skill, scenario=known.scenario, missing=missing, collect_tool=_collect(found, missing))

    async def read(self, path: str) -> bytes:
        """A file of the active skill's folder."""
        skill = self.inputs.skill(self.writer.log)
        if skill is None:
            raise ToolError(NO_FILES)
        return await asyncio.to_thread(partial(read_bundled, skill, path))


def _collect(skill: Skill, missing: Sequence[str]) -> str:
    return skill.collect_tool if missing else ""
