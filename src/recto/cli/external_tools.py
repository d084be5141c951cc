"""External tools of agents, as commands check them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from recto.agents.agent_folder import FILE
from recto.agents.external_tools import is_external
from recto.agents.folders import LoadedAgents
from recto.cli.log_output import Secrets, set_up_logs
from recto.cli.server_settings import SECRETS
from recto.config.problem import FileProblem
from recto.config.settings import ServerSettings
from recto.config.table_check import nearest

if TYPE_CHECKING:
    from recto.agents.agent import Agent
    from recto.tools.external.services import ToolSource
    from recto.tools.registry import Registry

# Function that connects to external tools. The composition root passes it; without it, commands do not connect.
TryTools: TypeAlias = Callable[
    [ServerSettings, "Mapping[str, Agent]", "Mapping[str, Registry]"], "Mapping[str, Sequence[ToolSource]]"
]


def find_external_tools(
    try_tools: TryTools | None, settings: ServerSettings, loaded_agents: LoadedAgents
) -> Mapping[str, Sequence[ToolSource]]:
    """Return the external tools of each agent, by name."""
    agents = {name: agent for name, agent in loaded_agents.items() if agent.mcp or agent.openapi}
    if try_tools is None or not agents:
        return {}
    # Log no warnings, because the answer contains the problems, and no secrets, which libraries may log.
    secrets = [value.strip() for name, value in os.environ.items() if name.startswith(SECRETS)]
    set_up_logs("error", "text", Secrets(secrets)).setLevel("ERROR")
    return try_tools(settings, agents, {name: load_own_tools(loaded_agents, name) for name in agents})


def load_own_tools(loaded_agents: LoadedAgents, name: str) -> Registry:
    """Return the local tools of an agent."""
    from recto.tools.load_tools import load_folder_tools, load_package_tools, make_agent_tools, make_built_in_tools
    from recto.tools.registry import Registry

    own = (*load_package_tools(), *load_folder_tools(loaded_agents.folders[name]))
    return Registry((*make_agent_tools(loaded_agents[name], Registry(make_built_in_tools())), *own))


def add_tool_problems(loaded_agents: LoadedAgents, tool_sources: Mapping[str, Sequence[ToolSource]]) -> LoadedAgents:
    """Add the problems of external tools. Such problems do not make an agent invalid."""
    problems, warnings = list[FileProblem](), list[FileProblem]()
    for source in [source for sources in tool_sources.values() for source in sources]:
        problems += [_source_problem(source, source.state.problem)] if source.state.problem else []
        warnings += [_source_problem(source, warning) for warning in source.state.warnings]
    for name, sources in tool_sources.items():
        if any(source.state.problem for source in sources):
            continue
        # Report unknown names in `confirm`, because a misspelt tool would need no approval.
        agent, tool_names = loaded_agents[name], [tool.name for source in sources for tool in source.state.tools]
        servers = [one.name for one in (*agent.mcp, *agent.openapi)]
        for one in [one for one in agent.confirm if is_external(one, servers) and one not in tool_names]:
            text = f"confirm names {one!r}, but there is no such tool{nearest(one, tool_names)}."
            problems.append(FileProblem(file=loaded_agents.folders[name] / FILE, line=None, text=text))
    return replace(
        loaded_agents,
        broken_skills=(*loaded_agents.broken_skills, *dict.fromkeys(problems)),
        warnings=(*loaded_agents.warnings, *dict.fromkeys(warnings)),
    )


def _source_problem(source: ToolSource, text: str) -> FileProblem:
    return FileProblem(file=source.place.file, line=source.place.line, text=f"{source.name}: {text.rstrip('.')}.")
