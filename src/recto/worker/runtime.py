"""Services that all runs of a process share. The composition root creates them once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Literal, TypeAlias

from recto.agents.agent import Agent
from recto.config.run_settings import BackoffSettings, RecorderSettings, WorkSettings
from recto.conversation.memo import clear_caches
from recto.engine.hub import Hub
from recto.models.ports import Model
from recto.models.prices import Prices, load_prices
from recto.page.text.tokens import OFFLINE, TokenCounter
from recto.store.store import Store
from recto.telemetry import Telemetry
from recto.tools.client_schema import Schemas
from recto.tools.commands.terminal import Terminal
from recto.tools.registry import Registry
from recto.tools.workspace.snapshots import Snapshots
from recto.tools.workspace.workspaces import Workspaces
from recto.tracing.spans import NO_TRACER, Tracer
from recto.worker.context.thread_files import FileServices
from recto.worker.gateway.gateway_memory import GatewayMemory
from recto.worker.log_cache import LogCache

# Places in a run where a crash would lose the most. Tests stop the process there.
Checkpoint: TypeAlias = Literal[
    "claimed",
    "entered",
    "call_begun",
    "delta",
    "replied",
    "tools_started",
    "tool_acted",
    "tool_ended",
    "ending",
    "asking",
    "asked",
    "summarised",
    "compacted",
]


def ignore_checkpoint(_checkpoint: Checkpoint) -> None:
    """Do nothing at a checkpoint."""


async def discover_nothing(_agent: str) -> None:
    """Return at once, for a server without external tools."""


@dataclass(frozen=True, kw_only=True)
class ModelServices:
    """The models, their prices and the limits of their pages.

    `vision` says whether models accept pictures; None uses the known abilities of each model. `quote_gate` and
    `page_gate` limit how many quotes and long pages are built at the same time.
    """

    default: Model
    by_name: Mapping[str, Model] = field(default_factory=dict[str, Model])
    prices: Prices = field(default_factory=load_prices)
    counter: TokenCounter = OFFLINE
    vision: bool | None = None
    backoff: BackoffSettings = BackoffSettings()
    random: Callable[[], float]
    quote_gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WorkSettings.quotes_at_once))
    page_gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    @property
    def all(self) -> tuple[Model, ...]:
        """Every model of the server."""
        return self.default, *self.by_name.values()

    def of(self, agent: Agent) -> Model:
        """Return the model of an agent: the model that it names, else the default."""
        return self.by_name.get(agent.model or "", self.default)


@dataclass(frozen=True, kw_only=True)
class ToolServices:
    """The tools of each agent, and the services that the tools use.

    `registries` change while external tools appear and disappear. `discover` waits until an agent's external tools were
    looked up once.
    """

    registries: Mapping[str, Registry]
    discover: Callable[[str], Awaitable[None]] = field(default=discover_nothing)
    schemas: Schemas = field(default_factory=Schemas)
    workspaces: Workspaces | None = None
    terminal: Terminal | None = None
    snapshots: Snapshots | None = None
    profile_bytes: int = WorkSettings.profile_bytes
    state_bytes: int = WorkSettings.state_bytes


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The services of a process: models, tools, storage and observability. Tests replace the clock and the ids.

    `zone` is the time zone of turns that set none. `checkpoint` is called at places where a crash would lose the most.
    """

    store: Store
    hub: Hub
    log_cache: LogCache
    agents: Mapping[str, Agent]
    models: ModelServices
    tools: ToolServices
    files: FileServices | None = None
    telemetry: Telemetry
    tracer: Tracer = NO_TRACER
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    zone: tzinfo = UTC
    recorder: RecorderSettings = RecorderSettings()
    checkpoint: Callable[[Checkpoint], None] = field(default=ignore_checkpoint)


async def forget_deleted(runtime: Runtime, gateway: GatewayMemory) -> int:
    """Clear memory of deleted users and threads. Return the number of threads dropped from the log cache.

    Clear caches that all owners share completely, because their entries have no owner.
    """
    clear_caches()
    gateway.clear()
    runtime.store.forget()
    await runtime.tools.schemas.clear()
    if runtime.files and runtime.files.pictures:
        runtime.files.pictures.forget()
    terminal = runtime.tools.terminal
    if terminal and (threads := terminal.threads()):
        remaining = await runtime.store.threads.find_existing(threads)
        await terminal.end_threads([thread for thread in threads if thread not in remaining])
    return await runtime.log_cache.drop_deleted()
