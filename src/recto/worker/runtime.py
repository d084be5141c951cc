"""What all runs of a process work with. Put together once, by the composition root."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Literal, TypeAlias

from recto.agents.agent import Agent
from recto.config.run_settings import BackoffSettings, RecorderSettings, WorkSettings
from recto.conversation.memo import forget_recent
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

# Places in a run where a process that dies loses the most. Whoever watches may stop it there.
Point: TypeAlias = Literal[
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


def pass_by(_point: Point) -> None:
    """Nobody watches."""


async def wait_for_none(_agent: str) -> None:
    """No tools live elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Store, readers, model, agents and their tools; time, chance and ids, so that tests can have their own.

    `models` are those that agents ask for by name; the others have `model`. `zone` is where it is that time, for turns
    that name no other. `workspaces` says which folder a thread works in, `terminal` runs commands there, `snapshots`
    keeps what was in it; a server may have none of these, nor files. `vision` says whether models see pictures, where
    it is not left to what is known of each; `profile_bytes` how much is kept of a user, `state_bytes` how long the
    state of a thread may be. `quoting` lets through as many as may make the quote of a page at a time, `setting` one
    page that takes long; `schemas` checks the arguments of clients' tools. `tools` may be others from one moment to the
    next, where some live elsewhere; `tools_tried` waits until an agent's were looked for. `relayed` are messages of
    other agents' requests.
    """

    store: Store
    hub: Hub
    model: Model
    agents: Mapping[str, Agent]
    tools: Mapping[str, Registry]
    log_cache: LogCache
    telemetry: Telemetry
    clock: Callable[[], datetime]
    chance: Callable[[], float]
    new_id: Callable[[], str]
    models: Mapping[str, Model] = field(default_factory=dict[str, Model])
    prices: Prices = field(default_factory=load_prices)
    counter: TokenCounter = OFFLINE
    backoff: BackoffSettings = BackoffSettings()
    recorder: RecorderSettings = RecorderSettings()
    reached: Callable[[Point], None] = field(default=pass_by)
    file_services: FileServices | None = None
    zone: tzinfo = UTC
    workspaces: Workspaces | None = None
    terminal: Terminal | None = None
    snapshots: Snapshots | None = None
    vision: bool | None = None
    profile_bytes: int = WorkSettings.profile_bytes
    state_bytes: int = WorkSettings.state_bytes
    tracer: Tracer = NO_TRACER
    quoting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WorkSettings.quotes_at_once))
    setting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    schemas: Schemas = field(default_factory=Schemas)
    relayed: GatewayMemory = field(default_factory=GatewayMemory)
    tools_tried: Callable[[str], Awaitable[None]] = field(default=wait_for_none)

    async def forget_gone(self) -> int:
        """Have nothing left in memory of who was deleted, here or by another process. Returns how many threads.

        What is kept for all is not told apart, so all of it goes: it costs a moment to work out again.
        """
        forget_recent()
        self.relayed.forget()
        self.store.forget()
        await self.schemas.forget()
        if self.file_services and self.file_services.pictures:
            self.file_services.pictures.forget()
        if self.terminal and (threads := self.terminal.threads()):
            known = await self.store.known_threads(threads)
            await self.terminal.end_threads([thread for thread in threads if thread not in known])
        return await self.log_cache.drop_gone()

    def model_of(self, agent: Agent) -> Model:
        """The model an agent works with."""
        return self.models.get(agent.model or "", self.model)
