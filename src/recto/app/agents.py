"""Who can work here: agents with their tools and the models they ask for."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from recto.agents.agent import Agent
from recto.agents.agent_folder import Toolbox
from recto.agents.folders import Loaded, load_agents
from recto.app.thread_folders import private_paths
from recto.config.run_settings import Mode
from recto.config.settings import ServerSettings
from recto.errors import SettingsError
from recto.http.network import Network
from recto.models.choose import choose_model, with_defaults
from recto.models.ports import Model
from recto.models.upstream import Upstream, choose_providers, make_upstream
from recto.models.wire_protocol import ProviderSdk
from recto.sandbox.bubblewrap import command_program
from recto.tools.commands.confinement import Confinement
from recto.tools.commands.placeholders import take_away_left
from recto.tools.commands.terminal import Terminal
from recto.tools.load_tools import load_folder_tools, load_package_tools, make_agent_tools, make_built_in_tools
from recto.tools.registry import Registry
from recto.tools.workspace.workspaces import check_given

LOGGER = logging.getLogger("recto.app")
LEAVE_OUT = "The folder agents was found here and is used; --agents none leaves it out"
NO_SANDBOX = (
    "Commands of agents run without a sandbox here, so a person is asked before each of them. "
    "Install bubblewrap and allow user namespaces to have one."
)


@dataclass(frozen=True, kw_only=True)
class AgentsAndModels:
    """The agents that can work here, with the tools of each and the models they ask for by name."""

    agents: Mapping[str, Agent]
    tools: Mapping[str, Registry]
    models: Mapping[str, Model]

    @property
    def run_commands(self) -> bool:
        """Whether one of them has a tool that runs commands."""
        return any(map(_run_commands, self.tools.values()))


def are_confined() -> bool:
    """Whether commands run in a sandbox here."""
    return command_program() is not None


def load_agents_and_models(settings: ServerSettings) -> AgentsAndModels:
    """Everybody who can work. One that cannot is left out and said to be, unless it answers where nobody is named."""
    built_in, packages = Registry(make_built_in_tools()), load_package_tools()

    @cache
    def of_folder(folder: Path) -> Registry:
        return Registry((*packages, *load_folder_tools(folder)))

    toolbox = Toolbox(built_in=built_in, of_folder=of_folder, warnings_of=lambda folder: of_folder(folder).warnings)
    loaded = load_agents(settings.agents, settings.limits, toolbox)
    if settings.has_one_model:
        loaded = replace(loaded, agents={name: replace(agent, model=None) for name, agent in loaded.items()})
    agents, models, left_out = _with_models(settings, loaded)
    for name in (settings.run_agent, settings.chat_agent):
        if name not in agents:
            known = f"there is none that can work; known: {', '.join(agents)}"
            why = "; ".join(map(str, loaded.broken.get(name, left_out.get(name, ()))))
            leave = LEAVE_OUT if settings.agents_here == "used" else ""
            allowed = ". ".join(one.strip(". ") for one in (known, why, leave) if one)
            raise SettingsError(name="agent", value=name, allowed=allowed)
    own = {name: make_agent_tools(agent, built_in) for name, agent in agents.items()}
    tools = {
        name: _with_questions(settings, agent, Registry((*own[name], *of_folder(loaded.folders[name]).values())))
        for name, agent in agents.items()
    }
    return AgentsAndModels(agents=agents, tools=tools, models=models)


def _with_questions(settings: ServerSettings, agent: Agent, tools: Registry) -> Registry:
    """An agent's tools, of which those ask a person first that the agent names, or that its mode is about."""
    folder = agent.workspace or settings.workspace
    if folder:
        check_given(folder, private_paths(settings))
    mode: Mode = agent.mode or settings.mode or ("ask" if folder else "full")
    is_confined = not _run_commands(tools) or are_confined()
    return tools.with_confirmation((*agent.confirm, *tools.approval_names(mode, is_confined=is_confined)))


def _run_commands(tools: Registry) -> bool:
    return any(tool.mark.changes == "anything" for tool in tools.values())


def make_terminal(settings: ServerSettings, available: AgentsAndModels) -> Terminal | None:
    """What runs the commands of agents; None where none has a tool for it. Says so where no sandbox works.

    What a server that was killed has left in folders is taken away first.
    """
    take_away_left(settings.placeholders_folder)
    if not available.run_commands:
        return None
    if not are_confined():
        LOGGER.warning("%s", NO_SANDBOX)
    confinement = Confinement(settings=settings.commands, program=command_program(), given=os.environ)
    return Terminal(settings.commands, confinement, settings.placeholders_folder)


def commands_in_words(available: AgentsAndModels) -> str:
    """What an operator is told of commands."""
    if not available.run_commands:
        return "none"
    return f"in a sandbox ({command_program()})" if are_confined() else "no sandbox: every command asks"


def _with_models(
    settings: ServerSettings, loaded: Loaded
) -> tuple[Mapping[str, Agent], Mapping[str, Model], Mapping[str, Sequence[SettingsError]]]:
    """Those whose model can be had, the models they name, and why the others are left out."""
    for problem in (*loaded.problems, *loaded.warnings):
        LOGGER.warning("%s", problem)
    models: dict[str, Model] = {}
    agents: dict[str, Agent] = {}
    left_out: dict[str, Sequence[SettingsError]] = {}
    for name, agent in loaded.items():
        try:
            if agent.model and agent.model not in models:
                models[agent.model] = model_of(settings, agent.model)
            agents[name] = with_defaults(agent, settings.model, settings.work.tool_calling)
        except SettingsError as error:
            LOGGER.warning("%s: agent %s is left out: %s", loaded.folders[name], name, error)
            left_out[name] = (error,)
    return agents, models, left_out


def model_of(settings: ServerSettings, name: str) -> Model:
    """A model by its name. Raises SettingsError where it cannot be had."""
    network = network_of(settings)
    return choose_model(name, os.environ, window=settings.work.window, timeouts=settings.timeouts, network=network)


def network_of(settings: ServerSettings) -> Network:
    """Return the proxies and certificates of outbound connections. Raise SettingsError for a bad value."""
    return Network.from_environment(os.environ, settings.network)


def upstreams_of(settings: ServerSettings, *, gateway_only: bool) -> Mapping[ProviderSdk, Upstream]:
    """Whom requests of other agents go to. One whose address or key is none is left out, as agents are.

    Where nothing else is served, it raises SettingsError.
    """
    timeouts = replace(settings.timeouts, first_byte=settings.gateway.first_byte)
    found = dict[ProviderSdk, Upstream]()
    for sdk, provider in choose_providers(settings.model, os.environ).items():
        try:
            found[sdk] = make_upstream(provider, os.environ, timeouts, network_of(settings))
        except SettingsError as error:
            if gateway_only:
                raise
            LOGGER.warning("The gateway does without %s: %s", provider.name, error)
    return found
