"""Inputs of a run's pages besides its log: the request, the agent with its model and tools, and the thread's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import cached_property

from recto.agents.agent import Agent
from recto.config.zones import find_zone
from recto.conversation.input.run_input import RunInput
from recto.conversation.log import Entry, view
from recto.conversation.message_files import FileRef
from recto.conversation.messages import Runner
from recto.models.ports import Model
from recto.page.body import Page
from recto.page.fold.fold_settings import FoldSettings
from recto.page.prefix import AnsweredPage
from recto.page.prompt.quote import Quote
from recto.page.prompt.reminder import Dataset
from recto.page.steps.compact import CompactSettings
from recto.page.text.tokens import Calibration
from recto.page.wire.base import Target
from recto.skills.skill import Skill
from recto.store.ports import StoredRun
from recto.tools.ports import ToolFiles
from recto.tools.registry import Registry
from recto.tools.workspace.workspaces import Workspace
from recto.worker.context.prompt_context import PromptContext, find_skill
from recto.worker.context.thread_files import NO_FILES, ThreadFiles, has_files, load_thread_files, open_tool_files
from recto.worker.log_cache import CachedLog
from recto.worker.runtime import Runtime

# Key of a context: the skill, its scenario, and the words that activated the skill.
ContextKey = tuple[str, str | None, tuple[str, ...]]


@dataclass(kw_only=True)
class PageState:
    """Values that change from one page of a run to the next.

    `history` limits the messages that pages can show if only the end of the log was read. `is_cold` marks a long log
    whose entries remember no encoded page. `last_model` is the model that received the last page. `last_answer` is the
    last answered page. `omits_pictures` is set after the provider rejected a page with pictures.
    """

    tools: Registry
    calibration: Calibration | None = None
    history: int | None = None
    is_cold: bool = False
    last_model: str = ""
    last_page: Page | None = None
    last_answer: AnsweredPage | None = None
    files: ThreadFiles = NO_FILES
    quote: Quote | None = None
    has_quote: bool = False
    omits_pictures: bool = False
    contexts: Mapping[ContextKey, PromptContext] = field(default_factory=dict[ContextKey, PromptContext])
    profile_version: int = 0

    def use_tools(self, tools: Registry) -> None:
        """Use these tools from the next page on. External tools may appear and disappear while a run is active."""
        if tools is not self.tools:
            self.tools = tools
            self.forget_contexts()

    def use_files(self, files: ThreadFiles) -> None:
        """Show these files of the thread."""
        self.files = files

    def use_quote(self, quote: Quote | None) -> None:
        """Show this quote on all pages of the run."""
        self.quote, self.has_quote = quote, True

    def add_contexts(self, contexts: Mapping[ContextKey, PromptContext]) -> None:
        """Store prompt contexts for the next pages."""
        self.contexts = {**self.contexts, **contexts}

    def forget_contexts(self) -> None:
        """Load the data of skills again, because the profile changed."""
        self.profile_version += 1
        self.contexts = {}

    def note_sent(self, model: str, page: Page | None = None) -> None:
        """Note which model received the last page, because the cache of that model may contain the page."""
        self.last_model, self.last_page = model, page

    def note_answer(self, answer: AnsweredPage) -> None:
        """Store the last answered page, to compare the next page with it."""
        self.last_answer = answer

    def calibrate(self, calibration: Calibration | None) -> None:
        """Set the tokens that the provider reported for the last page.

        Use None if the next page has different content.
        """
        self.calibration = calibration

    def note_warm(self) -> None:
        """Note that the entries of the log remember their encoded pages."""
        self.is_cold = False

    def show_all_history(self) -> None:
        """Note that the whole log was read, so that pages can show any part of it."""
        self.history = None

    def omit_pictures(self) -> None:
        """Omit pictures from all further pages of the run."""
        self.omits_pictures = True


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """Everything besides the log that determines the pages of a run. Only `pages` changes during the run.

    If `continues_turn`, an earlier run opened the turn. `approved_tools` no longer need confirmation. `awaited_tools`
    are client tools with open calls of earlier runs. `datasets` are the datasets that the user may use.
    """

    runtime: Runtime
    row: StoredRun
    request: RunInput
    agent: Agent
    model: Model
    pages: PageState
    approved_tools: frozenset[str] = frozenset()
    awaited_tools: frozenset[str] = frozenset()
    continues_turn: bool = False
    datasets: tuple[Dataset, ...] = ()

    async def load_files(self, log: Sequence[Entry], new: Sequence[FileRef] = ()) -> None:
        """Load the files of the thread. `new` are files of a request that is not stored yet."""
        services = self.runtime.files
        if services is None:
            return
        files = ThreadFiles(services=services)
        if self.agent.file_input.is_on or has_files(log):
            refs = (*await self.runtime.store.files.list_refs(self.row.thread), *new)
            services = services if self.target.sees_images else replace(services, pictures=None)
            files = await load_thread_files(services, refs, log, self.runtime.clock()) if refs else files
        self.pages.use_files(files)

    @property
    def compact_settings(self) -> CompactSettings:
        """The settings that say when and how far to summarise the conversation, for the model's window."""
        return self.agent.compacting(self.model.window)

    @cached_property
    def workspace(self) -> Workspace | None:
        """The folder in which the thread works."""
        workspaces = self.runtime.tools.workspaces
        return workspaces.of(self.row.thread, self.agent.workspace) if workspaces else None

    @cached_property
    def fold(self) -> FoldSettings:
        """The fold settings.

        If the agent sets no root, paths are relative to the workspace that its tools read (R4).
        """
        settings = self.agent.fold
        has_readers = any(tool in self.agent.tools for rule in settings.rules for tool in rule.tools)
        if settings.project.root is not None or not has_readers or self.workspace is None:
            return settings
        return settings.rooted_at(str(self.workspace.folder))

    @property
    def zone(self) -> tzinfo:
        """The time zone of the turn (P1): that of the client, else of the agent, else of the server."""
        name = self.request.options.timezone or self.agent.timezone
        return find_zone(name) if name else self.runtime.zone

    @property
    def target(self) -> Target:
        """The model that receives the pages. Settings of the agent or the server override its support of pictures."""
        settings = (False if self.pages.omits_pictures else None, self.agent.vision, self.runtime.models.vision)
        sees_images = next((vision for vision in settings if vision is not None), self.model.target.sees_images)
        return replace(self.model.target, sees_images=sees_images)

    def skill(self, log: Sequence[Entry]) -> Skill | None:
        """Return the active skill of the thread."""
        return find_skill(self.agent.skills, view(log).skill)

    @property
    def client_tools(self) -> frozenset[str]:
        """The names of the tools that the client runs."""
        return frozenset(tool.name for tool in self.request.tools) | self.awaited_tools

    def runner_of(self, name: str) -> Runner:
        """Return who runs a new call. The client runs the tools of its request; the server rejects unknown tools."""
        tool = self.pages.tools.get(name)
        if any(offer.name == name for offer in self.request.tools):
            return "form" if tool and tool.mark.by_client else "client"
        return "client" if name in self.awaited_tools and tool is None else "server"

    def open_tool_files(self, log: Sequence[Entry]) -> ToolFiles | None:
        """Return the files of the thread for tools."""
        return open_tool_files(self.pages.files, log, self.agent.file_input.max_files)

    def to_cache(self, log: tuple[Entry, ...]) -> CachedLog | None:
        """Return the log for the next run. Return None if its messages remember pages with the bytes of pictures."""
        if self.pages.files.has_bytes:
            return None
        return CachedLog(
            entries=log,
            calibration=self.pages.calibration,
            model=self.model.name,
            thread_created=self.row.thread_created,
            quote=self.pages.quote.text if self.pages.quote else "",
            history=self.pages.history,
            last_answer=self.pages.last_answer,
        )
