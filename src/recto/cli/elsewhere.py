"""Tools that live elsewhere, tried for a command: what was found, and what is wrong with which line."""

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

# Given by whoever puts the rooms together; a command without it tries nothing.
TryTools: TypeAlias = Callable[
    [ServerSettings, "Mapping[str, Agent]", "Mapping[str, Registry]"], "Mapping[str, Sequence[ToolSource]]"
]


def tools_elsewhere(
    trying: TryTools | None, settings: ServerSettings, loaded: Loaded
) -> Mapping[str, Sequence[ToolSource]]:
    """What agents find elsewhere, by their names. Nobody is asked where no agent has such tools."""
    asking = {name: agent for name, agent in loaded.items() if agent.mcp or agent.openapi}
    if trying is None or not asking:
        return {}
    # What is found goes into the answer; no line of the libraries below shows a secret.
    secrets = [value.strip() for name, value in os.environ.items() if name.startswith(SECRETS)]
    set_up_logs("error", "text", Secrets(secrets)).setLevel("ERROR")
    return trying(settings, asking, {name: own_tools(loaded, name) for name in asking})


def own_tools(loaded: Loaded, name: str) -> Registry:
    """The tools of an agent that live here."""
    from recto.tools.load_tools import tools_built_in, tools_of_agent, tools_of_folder, tools_of_packages
    from recto.tools.registry import Registry

    own = (*tools_of_packages(), *tools_of_folder(loaded.folders[name]))
    return Registry((*tools_of_agent(loaded[name], Registry(tools_built_in())), *own))


def with_tried(loaded: Loaded, found: Mapping[str, Sequence[ToolSource]]) -> Loaded:
    """The agents, with what is wrong elsewhere: one that misses tools is no broken agent, but is told as a problem."""
    problems = [_told(source, source.found.problem) for source in _every(found) if source.found.problem]
    problems += [problem for name, sources in found.items() for problem in _unconfirmed(loaded, name, sources)]
    warnings = [_told(source, warning) for source in _every(found) for warning in source.found.warnings]
    return replace(
        loaded,
        broken_skills=(*loaded.broken_skills, *dict.fromkeys(problems)),
        warnings=(*loaded.warnings, *dict.fromkeys(warnings)),
    )


def _unconfirmed(loaded: Loaded, name: str, sources: Sequence[ToolSource]) -> Iterator[FileProblem]:
    """Names of `confirm` that are told to live elsewhere, and do not: the tool they mean would act unasked."""
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
