"""The state of a claimed run: its row and counters, its log, what its pages are made of, and the one way to write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from functools import cached_property

from recto.agents.agent import Agent
from recto.config.zones import find_zone
from recto.conversation.attachment import FileRef, refs_in
from recto.conversation.events import Event
from recto.conversation.input.input_rules import run_options
from recto.conversation.input.run_input import RunInput
from recto.conversation.log import Entry, view
from recto.conversation.messages import AssistantMessage, Runner, ToolOffer, UserMessage
from recto.conversation.next_step import Run
from recto.engine.ports import Signal
from recto.errors import ModelError
from recto.models.ports import Model, Usage
from recto.page.body import Page
from recto.page.facts import Facts, Turn
from recto.page.prompt.quote import Quote
from recto.page.prompt.reminder import Dataset
from recto.page.text.tokens import Calibration
from recto.page.wire.base import Target
from recto.skills.known import KnownData
from recto.skills.skill import Skill
from recto.store.ports import Lease, Recorded, RunChange, StoredRun
from recto.tools.ports import FilesAtHand
from recto.tools.registry import Registry
from recto.worker.account import Account, charge
from recto.worker.context.prompt_context import (
    PromptContext,
    as_context,
    know,
    prompt_context,
    sampled,
    skill_of,
    with_client_system,
)
from recto.worker.context.thread_files import NO_FILES, ThreadFiles, tool_files
from recto.worker.log_cache import CachedLog
from recto.worker.recorder import Recorder
from recto.worker.runtime import Runtime

LOGGER = logging.getLogger("recto.worker")


@dataclass(kw_only=True)
class RunState:
    """One claimed run. `said` are ids of messages and calls that readers have seen and the log may not have.

    `broken_off` means what was said so far is kept.

    `awaited` are tools of the client's that its earlier runs had calls of, though this one does not name them.
    `files` are those of the thread, `datasets` those the user may use in this turn, `quote` is what its pages carry
    before the history, once that was read. `unpictured`: the provider would not take a page with pictures, so the rest
    of the run goes without.
    `prompt_contexts` are those whose data was looked up, by skill and scenario; a change of the profile forgets them.
    `held` waits for the next write and is part of it: a run's first step stores its input too.
    """

    runtime: Runtime
    run: StoredRun
    input: RunInput
    agent: Agent
    model: Model
    tools: Registry
    signal: Signal
    recorder: Recorder
    log: tuple[Entry, ...]
    failures: int
    too_long: int
    can_compact: bool
    calls: int
    account: Account
    last: Calibration | None = None
    full: bool = False
    problem: str | None = None
    broken_off: bool = False
    page: Page | None = None
    named: bool = False
    awaited: frozenset[str] = frozenset()
    files: ThreadFiles = NO_FILES
    unpictured: bool = False
    datasets: tuple[Dataset, ...] = ()
    quote: Quote | None = None
    is_quoted: bool = False
    prompt_contexts: dict[tuple[str, str | None], PromptContext] = field(
        default_factory=dict[tuple[str, str | None], PromptContext]
    )
    changes: int = 0
    said: set[str] = field(default_factory=set[str])
    held: RunChange = RunChange()
    held_events: tuple[Event, ...] = ()

    def snapshot(self) -> Run:
        """What `next_step` decides by, as it is now."""
        limits = self.agent.limits
        return Run(
            cancel=self.signal.cancelled.is_set(),
            now=self.runtime.clock(),
            deadline=self.deadline,
            failures=self.failures,
            too_long=self.too_long,
            full=self.full,
            can_compact=self.can_compact,
            client_tools=self.client_tools,
            repeatable=frozenset(name for name, tool in self.tools.items() if tool.mark.safe_to_repeat),
            max_steps=limits.steps,
            max_failures=limits.failures,
            max_bad_arguments=limits.bad_arguments,
            max_calls=limits.calls,
        )

    @property
    def outcome(self) -> str | None:
        """How the run ended; None while it has not."""
        return self.recorder.outcome

    @property
    def lease(self) -> Lease:
        """The right to write for the run."""
        return Lease(run=self.run.id, thread=self.run.thread, fence=self.run.fence)

    @property
    def deadline(self) -> datetime:
        """When the run has to be over."""
        return (self.run.started or self.run.created) + timedelta(seconds=self.agent.limits.seconds)

    @property
    def seconds_left(self) -> float:
        """Until then."""
        return max(0.0, (self.deadline - self.runtime.clock()).total_seconds())

    @property
    def zone(self) -> tzinfo:
        """The turn's time zone (P1): the client's, else the agent's, else the server's."""
        name = self.input.props.get("timezone") or self.agent.timezone
        return find_zone(str(name)) if name else self.runtime.zone

    @property
    def skill(self) -> Skill | None:
        """The skill the thread works in."""
        return skill_of(self.agent.skills, view(self.log).skill)

    async def load_prompt_context(self) -> PromptContext:
        """What the next page is made for. What a skill declares is looked up when it is first needed."""
        skill, changed = self.skill, view(self.log).skill
        if skill is None or changed is None:
            return self._context(None, KnownData())
        await self.know(skill, changed.scenario)
        return self.prompt_contexts[skill.name, changed.scenario]

    async def know(self, skill: Skill, scenario: str | None) -> KnownData:
        """What a skill may know of the run's user, looked up once."""
        place = (skill.name, scenario)
        while place not in self.prompt_contexts:
            before = self.changes
            known = await know(self.runtime.store, self.run.owner, skill, self._asked(scenario))
            if self.changes != before:
                # A tool changed the profile meanwhile: what was read may be what it was before.
                continue
            # Under the scenario it is committed as, too.
            context = self._context(skill, known)
            self.prompt_contexts |= {place: context, (skill.name, known.scenario): context}
        return self.prompt_contexts[place].known

    def _asked(self, scenario: str | None) -> KnownData:
        """What the request itself says of its user."""
        day = self.run.created.astimezone(self.zone).date()
        return KnownData(
            tier=self.run.tier,
            scenario=scenario,
            month=f"{day:%Y-%m}",
            day=day.isoformat(),
            thread=self.run.thread,
            locale=self.agent.locale,
        )

    def forget_known(self) -> None:
        """The profile was changed: what was looked up of it is looked up again when it is needed."""
        self.changes += 1
        self.prompt_contexts.clear()

    def _context(self, skill: Skill | None, known: KnownData) -> PromptContext:
        return prompt_context(self.agent, skill, known, run_options(self.input.props).voice_mode, self.tools)

    def facts(self, context: PromptContext) -> Facts:
        """All that shapes the next page."""
        seen, model, agent, offers = view(self.log), self.model, self.agent, self.offers(context)
        is_native, sampling = agent.tool_calling == "native", sampled(agent, seen, offers)
        user = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
        turn = Turn(
            response_id=user.response_id if isinstance(user, UserMessage) else "",
            admitted=user.time if user else None,
            zone=self.zone,
            datasets=self.datasets,
            context=(*self.input.context, *(() if agent.client_system else as_context(self.input.messages))),
        )
        return Facts(
            log=self.log,
            target=self.target,
            prompt=with_client_system(agent, context.prompt, self.input.messages),
            budget=context.budget,
            history=context.history,
            tools=offers,
            tool_calling=agent.tool_calling,
            turn=turn,
            quote=self.quote or (),
            quote_budget=agent.file_input.quote_tokens,
            urls=self.files.urls,
            pictures=self.files.pictures,
            max_files=agent.file_input.max_files,
            locale=agent.locale,
            options={**model.options_for(sampling, has_tools=is_native and bool(offers)), **agent.options},
            fold=agent.fold,
            now=self.runtime.clock(),
            counter=self.runtime.counter,
            last=self.last,
        )

    @property
    def target(self) -> Target:
        """The model a page is for. The agent says whether it sees pictures, else the server, else what is known."""
        refused = False if self.unpictured else None
        said = [vision for vision in (refused, self.agent.vision, self.runtime.vision) if vision is not None]
        return replace(self.model.target, sees_images=said[0]) if said else self.model.target

    @property
    def client_tools(self) -> frozenset[str]:
        """The tools that are the client's to run."""
        return frozenset(tool.name for tool in self.input.tools) | self.awaited

    def runner_of(self, name: str) -> Runner:
        """Who is to run a call made now: the client those of tools it brought; what nobody has is ours to refuse."""
        tool = self.tools.get(name)
        if any(brought.name == name for brought in self.input.tools):
            return "form" if tool and tool.mark.by_client else "client"
        return "client" if name in self.awaited and tool is None else "server"

    @property
    def own_tools(self) -> frozenset[str]:
        """The tools no client may answer for."""
        return self.tools.own_names()

    def tool_files(self) -> FilesAtHand | None:
        """The thread's files, for tools."""
        return tool_files(self.files, self.log, self.agent.file_input.max_files)

    def refs_in(self, tool: str, arguments: str) -> tuple[FileRef, ...]:
        """The files that the ids in a call's arguments stand for."""
        return refs_in(tool, arguments, self.files.refs.values())

    def offers(self, context: PromptContext) -> tuple[ToolOffer, ...]:
        """What the model may call: the agent's tools for it, then the client's, which may stand for one of them."""
        theirs = {tool.name for tool in self.input.tools}
        return (*[tool for tool in context.offers(self.tools) if tool.name not in theirs], *self.input.tools)

    def message_id(self) -> str:
        """The id of the next reply: the turn's own for its first, unless readers have seen it in a lost one."""
        seen = view(self.log)
        turn = seen.messages[seen.turn_start :]
        first = turn[0].response_id if turn and isinstance(turn[0], UserMessage) else ""
        is_first = all(message.role != "assistant" for message in turn)
        return first if first and is_first and first not in self.said else self.runtime.new_id()

    def call_id(self, given: str) -> str:
        """What a call goes by that is made now: the provider's id, unless it sent none or the thread has had it."""
        is_free = given and given not in self.said and given not in self._logged_calls
        id = given if is_free else self.runtime.new_id()
        self.said.add(id)
        return id

    @cached_property
    def _logged_calls(self) -> frozenset[str]:
        replies = [entry for entry in self.log if isinstance(entry, AssistantMessage)]
        return frozenset(call.id for reply in replies for call in reply.tool_calls)

    async def write(self, change: RunChange, events: Sequence[Event] = ()) -> Recorded:
        """Commit a change; then the log here has it too. Breaking off waits for that: half a write is none."""
        writing = asyncio.ensure_future(self._write(change, events))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait((writing,))
            if not writing.cancelled() and (error := writing.exception()):
                raise error from None
            raise

    def hold(self, change: RunChange, events: Sequence[Event]) -> None:
        """Have entries and events written with the next write. The log here has them from now on."""
        self.held, self.held_events = change, tuple(events)
        self.log = (*self.log, *_numbered(change.entries, self.run.last_seq + 1))

    async def settle(self) -> None:
        """Write what is held, if anything is."""
        if self.held.entered or self.held_events:
            await self.write(RunChange())

    async def _write(self, change: RunChange, events: Sequence[Event]) -> Recorded:
        if self.files.has_bytes:
            # Its messages remember pages with the bytes in them, those that were kept before the run too.
            self.runtime.log_cache.drop(self.run.thread)
        held, count = self.held, len(self.held.entries)
        entries = (*held.entries, *change.entries)
        whole = replace(change, entries=entries, entered=held.entered or change.entered)
        written = await self.recorder.write(whole, (*self.held_events, *events))
        self.held, self.held_events = RunChange(), ()
        known = self.log[: len(self.log) - count]
        numbered = _numbered(entries, written.last_seq - len(entries) + 1)
        # Entries that were held keep what pages remember of them, if their numbers are what they were taken to be.
        as_held = self.log[len(known) :] == numbered[:count]
        self.log = (*self.log, *numbered[count:]) if as_held else (*known, *numbered)
        # Only what is committed is kept for the next run.
        born = self.run.thread_created
        if not self.files.has_bytes:
            quote = self.quote.text if self.quote else ""
            kept = CachedLog(entries=self.log, last=self.last, model=self.model.name, born=born, quote=quote)
            self.runtime.log_cache.put(self.run.thread, kept)
        if written.cancel:
            self.signal.cancelled.set()
        return written

    def note_fault(self, error: ModelError) -> None:
        """Count a model call that failed, and say why where operators read it: users read less."""
        LOGGER.warning("run %s: %s", self.run.id, error, extra={"run": self.run.id})
        self.runtime.telemetry.failed(self.model.name, error)

    def spend(self, usage: Usage | None) -> Account:
        """Put a call on the run's account. Returns what the call alone used."""
        spent = charge(self.model.name, usage, self.runtime.prices)
        self.account = self.account.plus(spent)
        return spent


def _numbered(entries: Sequence[Entry], first: int) -> tuple[Entry, ...]:
    return tuple([replace(entry, seq=first + place) for place, entry in enumerate(entries)])


async def is_done_in_time(state: RunState, doing: asyncio.Task[object]) -> bool:
    """Wait for it. False: the run was cancelled, or its time is up, before it was done. It is left as it is."""
    cancelled = asyncio.create_task(state.signal.cancelled.wait())
    try:
        await asyncio.wait((doing, cancelled), timeout=state.seconds_left, return_when=asyncio.FIRST_COMPLETED)
        return doing.done()
    finally:
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
