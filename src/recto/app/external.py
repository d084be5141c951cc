"""External tools of a server or a trial, with their secrets, network access and sandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence

from recto.agents.agent import Agent
from recto.app.files import make_outbound
from recto.config.settings import ServerSettings
from recto.sandbox.bubblewrap import program_path
from recto.tools.client_schema import Schemas
from recto.tools.external.live_tools import LiveTools, tool_sources
from recto.tools.external.sandbox import Sandbox
from recto.tools.external.services import ExternalServices, ToolSource
from recto.tools.registry import Registry


def make_live_tools(
    settings: ServerSettings, agents: Mapping[str, Agent], own: Mapping[str, Registry], schemas: Schemas
) -> LiveTools:
    """Return the own and external tools of every agent. Starts nothing."""
    services = make_services(settings, schemas)
    sources = {name: tool_sources(agent, own[name], services) for name, agent in agents.items()}
    return LiveTools(own, sources, {name: agent.confirm for name, agent in agents.items()})


def try_tools(
    settings: ServerSettings, agents: Mapping[str, Agent], own: Mapping[str, Registry]
) -> Mapping[str, Sequence[ToolSource]]:
    """Connect to every external source once, concurrently. Returns the sources of each agent."""
    return asyncio.run(_discover(settings, agents, own))


async def _discover(
    settings: ServerSettings, agents: Mapping[str, Agent], own: Mapping[str, Registry]
) -> Mapping[str, Sequence[ToolSource]]:
    tools = make_live_tools(settings, agents, own, Schemas(settings.schemas))
    tools.start()
    try:
        # A source that does not respond in time reports that itself.
        await asyncio.gather(*[tools.wait_for_first_try(name, 2 * settings.external.start_seconds) for name in agents])
    finally:
        await tools.stop()
    return tools.sources


def make_services(settings: ServerSettings, schemas: Schemas) -> ExternalServices:
    """Return the services that external tools share."""
    outbound = make_outbound(settings)
    return ExternalServices(
        settings=settings.external,
        environment=os.environ,
        open_web=lambda internal: outbound().open_web(internal=internal),
        sandbox=Sandbox(program=program_path(), scratch_bytes=settings.external.scratch_bytes),
        schemas=schemas,
    )
