"""The current tools of each agent: its own, which never change, and external ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence

from recto.agents.agent import Agent
from recto.tools.external.services import ExternalServices, ToolSource
from recto.tools.registry import Registry

LOGGER = logging.getLogger("recto.tools")
STOP_SECONDS = 2.5
NOBODY_ASKED = "confirm names {name!r}, but there is no such tool, so nobody is asked for the one it means. Correct it."


def tool_sources(agent: Agent, own: Registry, services: ExternalServices) -> tuple[ToolSource, ...]:
    """Return the external tool sources of an agent."""
    if not agent.mcp and not agent.openapi:
        return ()
    # Imported here, because agents without such tools do not need these modules.
    from recto.tools.external.http_service import HttpService
    from recto.tools.external.mcp_server import McpServer

    used_names = frozenset(own)
    servers = [McpServer(one, used_names, services) for one in agent.mcp]
    return (*servers, *[HttpService(one, used_names, services) for one in agent.openapi])


class LiveTools(Mapping[str, Registry]):
    """The registry of each agent, rebuilt when a source changes. `confirm` are the tools that need approval."""

    def __init__(
        self,
        own: Mapping[str, Registry],
        sources: Mapping[str, Sequence[ToolSource]],
        confirm: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._own = own
        self._confirm = confirm or {}
        self.sources = {name: tuple(agent_sources) for name, agent_sources in sources.items() if agent_sources}
        self._registries: dict[str, tuple[tuple[int, ...], Registry]] = {}
        self._keeping: list[asyncio.Task[None]] = []

    def __getitem__(self, name: str) -> Registry:
        own, sources = self._own[name], self.sources.get(name, ())
        versions = tuple([source.state.version for source in sources])
        if not sources:
            return own
        if name not in self._registries or self._registries[name][0] != versions:
            tools = [tool for source in sources for tool in source.state.tools]
            # Keep the tools of a lost source, because it may be back at the next call and pages stay the same.
            missing = tuple([source.name for source in sources if source.state.problem and not source.state.tools])
            whole = Registry((*own.values(), *tools), missing=missing)
            self._registries[name] = versions, whole.with_confirmation(self._confirm.get(name, ()))
            for unknown in self.unconfirmed(name):
                LOGGER.warning("agent %s: %s", name, NOBODY_ASKED.format(name=unknown))
        return self._registries[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)

    def unconfirmed(self, name: str) -> tuple[str, ...]:
        """Return the names in `confirm` that match no tool and therefore have no effect. Empty until all sources
        answered.
        """
        sources = self.sources.get(name, ())
        if any(source.state.problem or not source.state.first_try.is_set() for source in sources):
            return ()
        names = {*self._own[name], *[tool.name for source in sources for tool in source.state.tools]}
        return tuple([one for one in self._confirm.get(name, ()) if one not in names])

    def unavailable(self, name: str) -> tuple[str, ...]:
        """Return the names of unavailable sources."""
        return tuple([source.name for source in self.sources.get(name, ()) if source.state.problem])

    def start(self) -> None:
        """Start connecting in the background."""
        every = [source for sources in self.sources.values() for source in sources]
        self._keeping = [asyncio.create_task(source.run()) for source in every]

    async def stop(self) -> None:
        """End all sessions. If ending one takes too long, cancel it a second time."""
        pending = set(self._keeping)
        for _ in range(2):
            for task in pending:
                task.cancel()
            pending = (await asyncio.wait(pending, timeout=STOP_SECONDS))[1] if pending else pending

    async def wait_for_first_try(self, name: str, seconds: float) -> None:
        """Wait at most `seconds` until all sources of an agent were tried once."""
        states = [source.state for source in self.sources.get(name, ()) if not source.state.first_try.is_set()]
        waiting = [asyncio.ensure_future(one.first_try.wait()) for one in states]
        if not waiting:
            return
        try:
            await asyncio.wait(waiting, timeout=seconds)
        finally:
            for one in waiting:
                one.cancel()
