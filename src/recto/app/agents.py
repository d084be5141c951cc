"""Who can work here: agents with their tools and the models they ask for."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from recto.agents.agent import Agent
from recto.agents.agent_folder import Toolbox
from recto.agents.folders import Loaded, load_agents
from recto.config.settings import ServerSettings
from recto.errors import SettingsError
from recto.models.choose import choose_model
from recto.models.ports import Model
from recto.tools.load_tools import tools_built_in, tools_of_agent, tools_of_folder, tools_of_packages
from recto.tools.registry import Registry

LOGGER = logging.getLogger("recto.app")


@dataclass(frozen=True, kw_only=True)
class AgentsAndModels:
    """The agents that can work here, with the tools of each and the models they ask for by name."""

    agents: Mapping[str, Agent]
    tools: Mapping[str, Registry]
    models: Mapping[str, Model]


def load_agents_and_models(settings: ServerSettings) -> AgentsAndModels:
    """Everybody who can work. One that cannot is left out and said to be, unless it answers where nobody is named."""
    built_in, packages = Registry(tools_built_in()), tools_of_packages()

    @cache
    def of_folder(folder: Path) -> Registry:
        return Registry((*packages, *tools_of_folder(folder)))

    loaded = load_agents(settings.agents, settings.limits, Toolbox(built_in=built_in, of_folder=of_folder))
    agents, models, left_out = _with_models(settings, loaded)
    for name in (settings.run_agent, settings.chat_agent):
        if name not in agents:
            known = f"there is none that can work; known: {', '.join(agents)}"
            why = "; ".join(map(str, loaded.broken.get(name, left_out.get(name, ()))))
            raise SettingsError(name="agent", value=name, allowed=f"{known}. {why}".strip(". "))
    tools = {
        name: Registry((*tools_of_agent(agent, built_in), *of_folder(loaded.folders[name]).values())).confirming(
            agent.confirm
        )
        for name, agent in agents.items()
    }
    return AgentsAndModels(agents=agents, tools=tools, models=models)


def _with_models(
    settings: ServerSettings, loaded: Loaded
) -> tuple[Mapping[str, Agent], Mapping[str, Model], Mapping[str, Sequence[SettingsError]]]:
    """Those whose model can be had, the models they name, and why the others are left out."""
    for problem in (*loaded.problems, *loaded.warnings):
        LOGGER.warning("%s", problem)
    model_of(settings, settings.model)
    models: dict[str, Model] = {}
    agents: dict[str, Agent] = {}
    left_out: dict[str, Sequence[SettingsError]] = {}
    for name, agent in loaded.items():
        try:
            if agent.model and agent.model not in models:
                models[agent.model] = model_of(settings, agent.model)
            agents[name] = agent
        except SettingsError as error:
            LOGGER.warning("%s: agent %s is left out: %s", loaded.folders[name], name, error)
            left_out[name] = (error,)
    return agents, models, left_out


def model_of(settings: ServerSettings, name: str) -> Model:
    """A model by its name. Raises SettingsError where it cannot be had."""
    return choose_model(name, os.environ, window=settings.work.window, timeouts=settings.timeouts)
