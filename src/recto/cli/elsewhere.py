"""External tools of agents, tried for a command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from recto.agents.agent_folder import FILE
from recto.agents.external_tools import is_elsewhere
from recto.agents.folders import Loaded
from recto.cli.logs import Secrets, set_up_logs
from recto.cli.server_settings import SECRETS
from recto.config.checked import nearest
from recto.config.problem import FileProblem
from recto.config.settings import ServerSettings

if TYPE_CHECKING:
    from recto.agents.agent import Agent
    from recto.tools.external.services import ToolSource
    from recto.tools.registry import Registry

# Passed in by the composition root; without it, external tools are not tried.
TryTools: TypeAlias = Callable[
    [ServerSettings, "Mapping[str, Agent]", "Mapping[str, Registry]"], "Mapping[str, Sequence[ToolSource]]"
]


def tools_elsewhere(
    trying: TryTools | None, settings: ServerSettings, loaded: Loaded
) -> Mapping[str, Sequence[ToolSource]]:
    """Return the external tools of each agent, by name."""
    asking = {name: agent for name, agent in loaded.items() if agent.mcp or agent.openapi}
    if trying is None or not asking:
        return {}
    # Problems are part of the answer; libraries must not log secrets.
    secrets = [value.strip() for name, value in os.environ.items() if name.startswith(SECRETS)]
    set_up_logs("error", "text", Secrets(secrets)).setLevel("ERROR")
    return trying(settings, asking, {name: own_tools(loaded, name) for name in asking})


def own_tools(loaded: Loaded, name: str) -> Registry:
    """Return the local tools of an agent."""
    from recto.tools.load_tools import load_folder_tools, load_package_tools, make_agent_tools, make_built_in_tools
    from recto.tools.registry import Registry

    own = (*load_package_tools(), *load_folder_tools(loaded.folders[name]))
    return Registry((*make_agent_tools(loaded[name], Registry(make_built_in_tools())), *own))


def with_tried(loaded: Loaded, found: Mapping[str, Sequence[ToolSource]]) -> Loaded:
    """Add the problems of external tools. They do not make an agent invalid."""
    problems = [_told(source, source.found.problem) for source in _every(found) if source.found.problem]
    problems += [problem for name, sources in found.items() for problem in _unconfirmed(loaded, name, sources)]
    warnings = [_told(source, warning) for source in _every(found) for warning in source.found.warnings]
    return replace(
        loaded,
        broken_skills=(*loaded.broken_skills, *dict.fromkeys(problems)),
        warnings=(*loaded.warnings, *dict.fromkeys(warnings)),
    )


def _unconfirmed(loaded: Loaded, name: str, sources: Sequence[ToolSource]) -> Iterator[FileProblem]:
    """Yield names in `confirm` that match no external tool: the tool meant would run without approval."""
    agent = loaded[name]
    if any(source.found.problem for source in sources):
        return
    known = [tool.name for source in sources for tool in source.found.tools]
    servers = [one.name for one in (*agent.mcp, *agent.openapi)]
    for one in [one for one in agent.confirm if is_elsewhere(one, servers) and one not in known]:
        text = f"confirm names {one!r}, which no tool is called, so nobody is asked{nearest(one, known)}."
        yield FileProblem(file=loaded.folders[name] / FILE, line=None, text=text)


def _every(found: Mapping[str, Sequence[ToolSource]]) -> Iterator[ToolSource]:
    return (source for sources in found.values() for source in sources)


def _told(source: ToolSource, text: str) -> FileProblem:
    return FileProblem(file=source.place.file, line=source.place.line, text=f"{source.name}: {text.rstrip('.')}.")
