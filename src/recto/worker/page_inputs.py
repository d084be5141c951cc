"""What the pages of one run are made of besides its log: the request, the agent, files, datasets, quote, what is known.

Each is looked up once in a run. Together with the log they are the facts that a page is assembled from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import cached_property
from time import perf_counter

from recto.agents.agent import Agent
from recto.config.zones import find_zone
from recto.conversation.attachment import FileRef, refs_in
from recto.conversation.input.run_input import RunInput
from recto.conversation.log import Entry, view
from recto.conversation.messages import Runner, UserMessage
from recto.models.ports import Model
from recto.models.prices import cache_prices
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts, Turn
from recto.page.fold.fold_settings import FoldSettings
from recto.page.manifest import Manifest
from recto.page.prefix import AnsweredPage
from recto.page.prompt.quote import Quote
from recto.page.prompt.reminder import Dataset
from recto.page.steps.compact import CompactSettings, is_due, is_full
from recto.page.text.tokens import Calibration
from recto.page.wire.base import Target
from recto.skills.known import KnownData
from recto.skills.skill import Skill
from recto.store.ports import StoredRun
from recto.tools.ports import ToolFiles
from recto.tools.registry import Registry
from recto.tools.workspace.workspaces import Workspace
from recto.worker.context.prompt_context import PromptContext, know, prompt_context, sampled, skill_of
from recto.worker.context.thread_files import (
    NO_FILES,
    FileServices,
    ThreadFiles,
    has_files,
    load_thread_files,
    tool_files,
)
from recto.worker.log_cache import CachedLog
from recto.worker.runtime import Runtime


@dataclass(kw_only=True)
class PageInputs:
    """What one run's pages are made of. `asked` is the request, with what it has of its turn.

    `goes_on` says that the run goes on with a turn that an earlier one opened.

    Tools in `agreed` ask nobody, though they are marked so.

    `awaited` are tools of the client's that its earlier runs had calls of, though this one does not name them. `last`
    is what the provider last said of a page's tokens; `shown_history` how much of the log can be shown, where it was
    not read whole; `is_cold` says that it is long and remembers no page. `files` are those of the thread, `datasets`
    those the user may use in this turn, `quote` is what pages carry before the history, once that was read. `sent_to`
    is the model that the last page went to, `answered` the last one that was answered, where this process has it.
    `unpictured`: the provider would not take a page with pictures, so the rest of the run goes without.
    """

    runtime: Runtime
    row: StoredRun
    asked: RunInput
    agent: Agent
    model: Model
    tools: Registry
    agreed: frozenset[str] = frozenset()
    goes_on: bool = False
    awaited: frozenset[str] = frozenset()
    last: Calibration | None = None
    shown_history: int | None = None
    is_cold: bool = False
    sent_to: str = ""
    answered: AnsweredPage | None = None
    files: ThreadFiles = field(default=NO_FILES, init=False)
    datasets: tuple[Dataset, ...] = field(default=(), init=False)
    quote: Quote | None = field(default=None, init=False)
    is_quoted: bool = field(default=False, init=False)
    unpictured: bool = field(default=False, init=False)
    # Those whose data was looked up, by skill, scenario and what took it up; a change of the profile forgets them.
    _contexts: dict[tuple[str, str | None, tuple[str, ...]], PromptContext] = field(
        default_factory=dict[tuple[str, str | None, tuple[str, ...]], PromptContext], init=False
    )
    _changes: int = field(default=0, init=False)

    async def load(self, log: Sequence[Entry], new: Sequence[FileRef] = ()) -> None:
        """Look up what of the thread and its user is neither in the log nor in the request.

        `new` are files that are in the request and not in the store yet.
        """
        named = tuple(id.lower() for id in (*self.agent.datasets, *self.asked.options.datasets))
        if named:
            # Asked again: between admission and now somebody may have been shut out (F10).
            self.datasets = tuple(await self.runtime.store.usable_datasets(self.row.owner, named))
        if services := self.runtime.file_services:
            may_have = self.agent.file_input.is_on or has_files(log)
            self.files = await self._load_files(log, services, new) if may_have else ThreadFiles(services=services)

    async def _load_files(self, log: Sequence[Entry], services: FileServices, new: Sequence[FileRef]) -> ThreadFiles:
        refs = (*await self.runtime.store.file_refs(self.row.thread), *new)
        if not refs:
            return ThreadFiles(services=services)
        seen = services if self.target.sees_images else replace(services, pictures=None)
        return await load_thread_files(seen, refs, log, self.runtime.clock())

    async def next_page(self, log: tuple[Entry, ...], correction: str = "") -> tuple[Facts, Page, Manifest]:
        """The page that a log comes to, and what it was made of. Every page of a conversation is made here.

        `correction` is what the model is told of a reply that could not be used.
        """
        context = await self.prompt_context(log)
        facts = replace(self.facts(log, context), correction=correction)
        page, manifest = await self.set_page(facts)
        # A skill that the agent has no more is in the log, but not in the page.
        return facts, page, replace(manifest, skill=context.skill.name if context.skill else None)

    @property
    def compacting(self) -> CompactSettings:
        """When and how far the conversation is summarised, by the window of the model that it is sent to."""
        return self.agent.compacting(self.model.window)

    def needs_summary(self, log: Sequence[Entry], manifest: Manifest) -> bool:
        """Whether the page of a log has no room, and what is old is to be summarised first."""
        settings = self.compacting
        return is_full(manifest.tokens.tokens, settings) and is_due(view(log), settings, self.runtime.counter)

    async def set_page(self, facts: Facts) -> tuple[Page, Manifest]:
        """The page of facts. A long log that remembers nothing is set in a thread: all others go on meanwhile."""
        if not self.is_cold:
            return self._assemble(facts)
        # One at a time: with each more the loop would wait for another one's turn.
        await self.runtime.setting.acquire()
        making = asyncio.ensure_future(asyncio.to_thread(self._assemble, facts))
        # Not when this is broken off: the thread goes on to its end.
        making.add_done_callback(lambda _: self.runtime.setting.release())
        made = await asyncio.shield(making)
        self.is_cold = False
        return made

    def _assemble(self, facts: Facts) -> tuple[Page, Manifest]:
        begun = perf_counter()
        made = assemble(facts)
        self.runtime.telemetry.page.took(perf_counter() - begun)
        return made

    def facts(self, log: tuple[Entry, ...], context: PromptContext) -> Facts:
        """All that shapes the next page."""
        seen, agent = view(log), self.agent
        is_native, sampling = agent.tool_calling != "prompt", sampled(agent, seen, context.tools)
        user = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
        turn = Turn(
            response_id=user.response_id if isinstance(user, UserMessage) else "",
            admitted=user.time if user else None,
            zone=self.zone,
            datasets=self.datasets,
            context=context.items,
        )
        has_tools = is_native and bool(context.tools)
        return Facts(
            log=log,
            target=self.target,
            prompt=context.prompt,
            budget=context.budget,
            history=context.history,
            tools=context.tools,
            tool_calling=agent.tool_calling or "native",
            call_form=agent.call_form,
            turn=turn,
            quote=self.quote or (),
            quote_budget=agent.file_input.quote_tokens,
            urls=self.files.urls,
            pictures=self.files.pictures,
            max_files=agent.file_input.max_files,
            locale=agent.locale,
            options={**self.model.options_for(sampling, has_tools=has_tools), **agent.options},
            fold=self.fold,
            cache_prices=cache_prices(self.model.name, self.last.reported if self.last else 0, self.runtime.prices),
            sent_to=self.target.model if self.sent_to == self.model.name else self.sent_to,
            now=self.runtime.clock(),
            counter=self.runtime.counter,
            last=self.last,
        )

    @cached_property
    def workspace(self) -> Workspace | None:
        """The folder the thread works in."""
        places = self.runtime.workspaces
        return places.of(self.row.thread, self.agent.workspace) if places else None

    @cached_property
    def fold(self) -> FoldSettings:
        """How results are folded. Paths of who reads files start where they are read (R4), unless the agent says."""
        settings = self.agent.fold
        reads = any(tool in self.agent.tools for rule in settings.rules for tool in rule.tools)
        if settings.project.root is not None or not reads or self.workspace is None:
            return settings
        return settings.rooted_at(str(self.workspace.folder))

    @property
    def zone(self) -> tzinfo:
        """The turn's time zone (P1): the client's, else the agent's, else the server's."""
        name = self.asked.options.timezone or self.agent.timezone
        return find_zone(name) if name else self.runtime.zone

    @property
    def target(self) -> Target:
        """The model a page is for. The agent says whether it sees pictures, else the server, else what is known."""
        refused = False if self.unpictured else None
        said = [vision for vision in (refused, self.agent.vision, self.runtime.vision) if vision is not None]
        return replace(self.model.target, sees_images=said[0]) if said else self.model.target

    # The skill, and what is known for it

    def skill(self, log: Sequence[Entry]) -> Skill | None:
        """The skill the thread works in."""
        return skill_of(self.agent.skills, view(log).skill)

    async def prompt_context(self, log: Sequence[Entry]) -> PromptContext:
        """What the next page is made for. What a skill declares is looked up when it is first needed."""
        self._refresh_tools()
        skill, changed = self.skill(log), view(log).skill
        if skill is None or changed is None:
            return prompt_context(self.agent, self.tools, self.asked)
        await self.know(skill, changed.scenario, changed.said)
        return self._contexts[skill.name, changed.scenario, changed.said]

    def _refresh_tools(self) -> None:
        """Tools that live elsewhere come and go: a page has those there are, and its calls find the same."""
        tools = self.runtime.tools.get(self.agent.name, self.tools)
        if tools is not self.tools:
            self.tools = tools
            self.forget_known()

    async def know(self, skill: Skill, scenario: str | None, said: tuple[str, ...] = ()) -> KnownData:
        """What a skill may know of the run's user, looked up once. `said` are the words that took it up."""
        place = (skill.name, scenario, said)
        while place not in self._contexts:
            before = self._changes
            known = await know(self.runtime.store, self.row.owner, skill, self._asked(scenario))
            if self._changes != before:
                # A tool changed the profile meanwhile: what was read may be what it was before.
                continue
            # Under the scenario it is committed as, too.
            context = prompt_context(self.agent, self.tools, self.asked, skill, known, triggers=said)
            self._contexts |= {place: context, (skill.name, known.scenario, said): context}
        return self._contexts[place].known

    def _asked(self, scenario: str | None) -> KnownData:
        """What the request itself says of its user."""
        day = self.row.created.astimezone(self.zone).date()
        return KnownData(
            tier=self.row.tier,
            scenario=scenario,
            month=f"{day:%Y-%m}",
            day=day.isoformat(),
            thread=self.row.thread,
            locale=self.agent.locale,
        )

    def forget_known(self) -> None:
        """The profile was changed: what was looked up of it is looked up again when it is needed."""
        self._changes += 1
        self._contexts.clear()

    # What comes of the calls that are made

    def take_quote(self, quote: Quote | None) -> None:
        """The quote was read: all pages of the run carry it."""
        self.quote, self.is_quoted = quote, True

    def calibrate(self, last: Calibration | None) -> None:
        """What the provider said of the last page's tokens; None where the next page is another one."""
        self.last = last

    def note_sent(self, model: str) -> None:
        """The thread's last page went to this model: its cache is the one that may have it."""
        self.sent_to = model

    def note_answered(self, answered: AnsweredPage) -> None:
        """The model has answered a page: the next one is compared with it."""
        self.answered = answered

    def note_whole(self) -> None:
        """The log was read whole: any page of it can be set."""
        self.shown_history = None

    def leave_pictures_out(self) -> None:
        """The provider would not take a page with them."""
        self.unpictured = True

    def to_cache(self, log: tuple[Entry, ...]) -> CachedLog | None:
        """The log as it is kept for the next run; None where its messages remember pages with bytes in them."""
        if self.files.has_bytes:
            return None
        return CachedLog(
            entries=log,
            last=self.last,
            model=self.model.name,
            born=self.row.thread_created,
            quote=self.quote.text if self.quote else "",
            history=self.shown_history,
            answered=self.answered,
        )

    # Whose tools there are, and the files they get

    @property
    def client_tools(self) -> frozenset[str]:
        """The tools that are the client's to run."""
        return frozenset(tool.name for tool in self.asked.tools) | self.awaited

    def runner_of(self, name: str) -> Runner:
        """Who is to run a call made now: the client those of tools it brought; what nobody has is ours to refuse."""
        tool = self.tools.get(name)
        if any(brought.name == name for brought in self.asked.tools):
            return "form" if tool and tool.mark.by_client else "client"
        return "client" if name in self.awaited and tool is None else "server"

    def tool_files(self, log: Sequence[Entry]) -> ToolFiles | None:
        """The thread's files, for tools."""
        return tool_files(self.files, log, self.agent.file_input.max_files)

    def refs_in(self, tool: str, arguments: str) -> tuple[FileRef, ...]:
        """The files that the ids in a call's arguments stand for."""
        return refs_in(tool, arguments, self.files.refs.values())
