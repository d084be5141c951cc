"""Context of a tool call: its run, the log, the user's profile, the shared state and the agent's skills."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from recto.agents.profile_schema import check_profile
from recto.config.table_check import nearest
from recto.conversation.events import ActivityUpdate, Event
from recto.conversation.json import Json
from recto.conversation.log import Entry, View, view
from recto.conversation.message_files import arguments_for
from recto.conversation.messages import AssistantMessage, ToolCall
from recto.errors import InvalidRequest, ToolError, WireError
from recto.page.earlier_results import NotRecalled, Recalled, find_result
from recto.page.manifest import Recall
from recto.skills.bundled import read_bundled
from recto.skills.expert import missing_for
from recto.skills.skill import CORE
from recto.store.ports import Lease
from recto.store.store import Store
from recto.store.users.users import ProfileChange
from recto.tools.call import ToolLimits, call_tool
from recto.tools.ports import Activation, Progress, ReportProgress, ToolContext, ToolResult
from recto.tools.registry import Registry
from recto.worker.context.page_facts import facts, load_skill_context, prompt_context
from recto.worker.context.prompt_context import find_skill, select_tools
from recto.worker.log_cache import is_unread
from recto.worker.log_writer import LogWriter
from recto.worker.run_inputs import RunInputs
from recto.worker.run_spans import begin_tool, note_result
from recto.worker.run_state import LoadedRun
from recto.worker.tools.shared_state import SharedState

NAME_CHARACTERS = 64
NO_SKILL = "There is no skill {name!r}{known}."
NO_FILES = "No skill is active, so there are no files to read. Take one up with use_skill first."


async def execute(run: LoadedRun, call: ToolCall, tools: Registry, report: ReportProgress) -> ToolResult:
    """Run a call with the tool of that name in `tools`, and return the result."""
    runtime, limits = run.runtime, run.state.limits
    state = SharedState(run.writer, runtime.tools.state_bytes)
    context = replace(_context(run, call, report), state=state)
    bounds = ToolLimits(seconds=limits.tool_seconds, characters=limits.tool_characters)
    tool = tools.get(call.name)
    # Give the span the call with file ids, because signed URLs are credentials.
    with begin_tool(run.span, call) as span:
        if tool and tool.mark.external:
            call = replace_file_ids(call, run.inputs.pages.files.fresh_urls(context.now))
        result = await call_tool(tools, call, context, bounds, [offer.name for offer in run.inputs.request.tools])
        note_result(span, result)
    runtime.telemetry.record_tool_call(call.name if tool else None, result.error)
    return replace(result, changes=(*result.changes, *state.changes)) if state.changes else result


def replace_file_ids(call: ToolCall, urls: Mapping[str, str]) -> ToolCall:
    """Return a call with urls in place of file ids, for an external tool (F8). The log keeps the ids."""
    return replace(call, arguments=arguments_for(call.name, call.arguments, urls))


def find_tools_of_reply(inputs: RunInputs, log: Sequence[Entry]) -> Registry:
    """Return the tools that were offered for the newest reply, and the hidden tools.

    A call of the reply may have changed the skill since. After a crash, another worker needs the same tools.
    """
    before, tools = View(entries=_before_reply(log)), inputs.pages.tools
    names = select_tools(inputs.agent, find_skill(inputs.agent.skills, before.skill), tools)
    return Registry([tool for name, tool in tools.items() if name in names or not tool.is_offered])


def _before_reply(log: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the visible entries before the newest reply."""
    entries = view(log).entries
    places = (place for place in range(len(entries) - 1, -1, -1) if isinstance(entries[place], AssistantMessage))
    return entries[: next(places, len(entries))]


def _context(run: LoadedRun, call: ToolCall, report: ReportProgress) -> ToolContext:
    runtime, inputs, row, log = run.runtime, run.inputs, run.state.row, run.writer.log
    profile = UserProfile(
        store=runtime.store,
        owner=row.owner,
        schema=inputs.agent.profile_schema,
        clock=runtime.clock,
        limit_bytes=runtime.tools.profile_bytes,
        on_change=inputs.pages.forget_contexts,
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
        skills=RunSkills(inputs=inputs, writer=run.writer) if inputs.agent.skills else None,
        log=RunLog(inputs=inputs, writer=run.writer),
        tier=row.tier,
        locale=inputs.agent.locale,
    )


@dataclass(frozen=True, kw_only=True)
class UserProfile:
    """The profile of a run's user. A worker that lost the lease cannot change it. Each change calls `on_change`."""

    store: Store
    owner: str
    schema: str | None
    clock: Callable[[], datetime]
    limit_bytes: int
    on_change: Callable[[], None]
    lease: Lease

    async def fields(self, *names: str) -> Mapping[str, Json]:
        """Return the given profile fields that exist."""
        return await self.store.users.read_fields(self.owner, names)

    async def change(self, field: str, value: Json) -> None:
        """Store a field, or delete it with None."""
        change = ProfileChange(fields={field: value}, replaces=True, check=self._check, lease=self.lease)
        await self._write(change, field)

    def _check(self, fields: Mapping[str, Json]) -> None:
        problem = check_profile(fields, self.schema) if self.schema else None
        if problem:
            raise InvalidRequest(problem, where="profile")

    async def skill_data(self, skill: str) -> Json:
        """Return the stored data of a skill, or None."""
        return await self.store.users.read_skill_data(self.owner, skill)

    async def keep(self, skill: str, data: Json) -> None:
        """Store the data of a skill, or delete it with None."""
        change = ProfileChange(skill_data={skill: data}, replaces=True, lease=self.lease)
        await self._write(change, f"what {skill} found")

    async def _write(self, change: ProfileChange, name: str) -> None:
        try:
            await self.store.users.change_profile(self.owner, change, self.clock(), self.limit_bytes)
        except (InvalidRequest, WireError) as error:
            raise ToolError(f"{name[:1].upper()}{name[1:]} cannot be kept: {error}") from error
        self.on_change()


@dataclass(frozen=True, kw_only=True)
class RunLog:
    """The log before the reply with the call. It excludes results of the reply's other calls."""

    inputs: RunInputs
    writer: LogWriter

    async def recall(self, query: Recall) -> Recalled | NotRecalled:
        """Return an earlier result. Load the unread part of the log only if the result may be there."""
        before = _before_reply(self.writer.log)
        page_facts = facts(self.inputs, await prompt_context(self.inputs, before), before)
        result = find_result(page_facts, query)
        if isinstance(result, Recalled) or not is_unread(before):
            return result
        return find_result(replace(page_facts, log=_before_reply(await self.writer.read_all())), query)


@dataclass(frozen=True, kw_only=True)
class RunSkills:
    """The skills of a run's agent. Data that was loaded on activation is also used for the skill's first page."""

    inputs: RunInputs
    writer: LogWriter

    @property
    def names(self) -> Sequence[str]:
        """The skills that a tool may activate. With an active skill, `core` deactivates it."""
        return (*self.inputs.agent.skills, *((CORE,) if self.inputs.skill(self.writer.log) else ()))

    async def activate(self, skill: str, scenario: str | None) -> Activation:
        """Load the data of a skill and return its activation, with the paths of missing data."""
        if skill not in self.names:
            name = skill[:NAME_CHARACTERS]
            raise ToolError(NO_SKILL.format(name=name, known=nearest(name, self.names)))
        if skill == CORE:
            return Activation(skill=None)
        definition = self.inputs.agent.skills[skill]
        data = (await load_skill_context(self.inputs, definition, scenario)).data
        missing = missing_for(definition, data)
        collect_tool = definition.collect_tool if missing else ""
        return Activation(skill=skill, scenario=data.scenario, missing=missing, collect_tool=collect_tool)

    async def read(self, path: str) -> bytes:
        """Return a file of the active skill's folder."""
        skill = self.inputs.skill(self.writer.log)
        if skill is None:
            raise ToolError(NO_FILES)
        return await asyncio.to_thread(partial(read_bundled, skill, path))


ACTIVITY = "recto.progress"
# Minimum interval between updates. Each update is a stored event, and readers cannot follow faster ones.
MIN_INTERVAL = timedelta(milliseconds=300)


class ProgressReporter:
    """Reporter of the progress of one call. Each task of the call has an id. Readers get only some of the updates."""

    def __init__(self, emit: Callable[[Event], None], message: str, clock: Callable[[], datetime]) -> None:
        self._emit = emit
        self._message = message
        self._clock = clock
        self._emitted: dict[str, tuple[datetime, Progress]] = {}
        self._latest: dict[str, Progress] = {}

    def __call__(self, progress: Progress) -> None:
        """Report progress. Skip an unchanged report, and one shortly after the last update."""
        now, last = self._clock(), self._emitted.get(progress.id)
        self._latest[progress.id] = progress
        if last is None or (progress != last[1] and now - last[0] >= MIN_INTERVAL):
            self._emitted[progress.id] = now, progress
            self._update(progress, "running")

    def end(self) -> None:
        """Report the end of all tasks that reported progress."""
        for progress in self._latest.values():
            self._update(progress, "ended")
        self._emitted, self._latest = {}, {}

    def _update(self, progress: Progress, status: Literal["running", "ended"]) -> None:
        content: dict[str, Json] = {"label": progress.label, "status": status, "done": progress.done}
        if progress.total is not None:
            content["total"] = progress.total
        content["unit"] = progress.unit
        if progress.text:
            content["text"] = progress.text
        message = f"{self._message}-{progress.id}" if progress.id else self._message
        self._emit(ActivityUpdate(message=message, activity=ACTIVITY, content=content))
