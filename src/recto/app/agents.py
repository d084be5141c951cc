"""The usable agents with their tools and models."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from recto.agents.agent import Agent
from recto.agents.agent_folder import Toolbox
from recto.agents.folders import LoadedAgents, load_agents
from recto.cli.server_settings import FILE
from recto.config.run_settings import Mode
from recto.config.settings import ServerSettings
from recto.errors import SettingsError
from recto.files.storage.choose_storage import read_storage_url
from recto.http.network import Network
from recto.models.choose import choose_model, with_defaults
from recto.models.ports import Model
from recto.models.upstream import Upstream, choose_providers, make_upstream
from recto.models.wire_protocol import ProviderSdk
from recto.sandbox.bubblewrap import command_program
from recto.tools.commands.confinement import Confinement
from recto.tools.commands.placeholders import remove_leftovers
from recto.tools.commands.terminal import Terminal
from recto.tools.load_tools import load_folder_tools, load_package_tools, make_agent_tools, make_built_in_tools
from recto.tools.registry import Registry
from recto.tools.workspace.workspaces import DATABASE_ENDINGS, Workspaces, check_given

LOGGER = logging.getLogger("recto.app")
IGNORE_FOLDER = "The server uses the folder `agents` of this directory; ignore it with --agents none"
NO_SANDBOX = (
    "Agents run commands without a sandbox here, so each command needs approval. "
    "To sandbox commands, install bubblewrap and allow user namespaces."
)


@dataclass(frozen=True, kw_only=True)
class AgentsAndModels:
    """The usable agents, the tools of each, and the models that they name."""

    agents: Mapping[str, Agent]
    tools: Mapping[str, Registry]
    models: Mapping[str, Model]

    @property
    def has_commands(self) -> bool:
        """True if an agent has a tool that runs commands."""
        return any(map(_has_commands, self.tools.values()))


def load_agents_and_models(settings: ServerSettings) -> AgentsAndModels:
    """Load all usable agents. An unusable one is skipped with a warning; an unusable default agent is an error."""
    built_in, packages = Registry(make_built_in_tools()), load_package_tools()

    @cache
    def of_folder(folder: Path) -> Registry:
        return Registry((*packages, *load_folder_tools(folder)))

    toolbox = Toolbox(built_in=built_in, of_folder=of_folder, warnings_of=lambda folder: of_folder(folder).warnings)
    found_agents = load_agents(settings.agents, settings.limits, toolbox)
    if settings.has_one_model:
        found_agents = replace(
            found_agents, agents={name: replace(agent, model=None) for name, agent in found_agents.items()}
        )
    agents, models, errors = _with_models(settings, found_agents)
    for name in (settings.run_agent, settings.chat_agent):
        if name not in agents:
            names = f"no usable agent has this name; known: {', '.join(agents)}"
            reasons = "; ".join(map(str, found_agents.broken.get(name, errors.get(name, ()))))
            advice = IGNORE_FOLDER if settings.agents_here == "used" else ""
            allowed = ". ".join(text.strip(". ") for text in (names, reasons, advice) if text)
            raise SettingsError(name="agent", value=name, allowed=allowed)
    tools = dict[str, Registry]()
    for name, agent in agents.items():
        folder = agent.workspace or settings.workspace
        if folder:
            check_given(folder, private_paths(settings))
        mode: Mode = agent.mode or settings.mode or ("ask" if folder else "full")
        own = Registry((*make_agent_tools(agent, built_in), *of_folder(found_agents.folders[name]).values()))
        is_confined = not _has_commands(own) or has_sandbox()
        # The agent and its mode name the tools that need approval.
        tools[name] = own.with_confirmation((*agent.confirm, *own.approval_names(mode, is_confined=is_confined)))
    return AgentsAndModels(agents=agents, tools=tools, models=models)


def _with_models(
    settings: ServerSettings, found_agents: LoadedAgents
) -> tuple[Mapping[str, Agent], Mapping[str, Model], Mapping[str, Sequence[SettingsError]]]:
    """Return the agents with a usable model, the models that they name, and the errors of the others."""
    for problem in (*found_agents.problems, *found_agents.warnings):
        LOGGER.warning("%s", problem)
    models: dict[str, Model] = {}
    agents: dict[str, Agent] = {}
    errors: dict[str, Sequence[SettingsError]] = {}
    for name, agent in found_agents.items():
        try:
            if agent.model and agent.model not in models:
                models[agent.model] = model_of(settings, agent.model)
            agents[name] = with_defaults(agent, settings.model, settings.work.tool_calling)
        except SettingsError as error:
            LOGGER.warning("%s: agent %s is skipped: %s", found_agents.folders[name], name, error)
            errors[name] = (error,)
    return agents, models, errors


def _has_commands(tools: Registry) -> bool:
    return any(tool.mark.changes == "anything" for tool in tools.values())


def has_sandbox() -> bool:
    """Return True if commands run in a sandbox here."""
    return command_program() is not None


def make_terminal(settings: ServerSettings, available: AgentsAndModels) -> Terminal | None:
    """Return the terminal for commands of agents; None if no agent runs commands. Warns if there is no sandbox.

    Removes the leftovers of a killed server first.
    """
    remove_leftovers(settings.placeholders_folder)
    if not available.has_commands:
        return None
    if not has_sandbox():
        LOGGER.warning("%s", NO_SANDBOX)
    confinement = Confinement(settings=settings.commands, program=command_program(), server_environment=os.environ)
    return Terminal(settings.commands, confinement, settings.placeholders_folder)


def describe_commands(available: AgentsAndModels) -> str:
    """Describe how commands run, for operators."""
    if not available.has_commands:
        return "none"
    return f"in a sandbox ({command_program()})" if has_sandbox() else "no sandbox: every command needs approval"


def make_workspaces(settings: ServerSettings) -> Workspaces:
    """Return the workspaces: a folder for each thread, or the configured one."""
    code = (Path(sys.prefix), Path(__file__).parents[1])
    return Workspaces(
        root=settings.workspaces_folder,
        given_folder=settings.workspace,
        most_bytes=settings.work.workspace_bytes,
        search=settings.search,
        limits=settings.file_tools,
        private=tuple(private_paths(settings)),
        # Settings files are also private. Guarding them keeps tools from creating missing ones.
        guarded=(*((settings.agents,) if settings.agents else ()), *_settings_files(settings), *code),
    )


def private_paths(settings: ServerSettings) -> Iterator[Path]:
    """Yield the files of the server on this machine, which may contain secrets."""
    yield from (settings.data, *_settings_files(settings))
    if settings.database_url:
        from recto.store.database.opening import (
            database_file,  # here: servers without a database url need no database library
        )

        if file := database_file(settings.database_url):
            yield from (file, *(file.with_name(file.name + ending) for ending in DATABASE_ENDINGS))
    if settings.storage_url and isinstance(folder := read_storage_url(settings.storage_url), Path):
        yield folder


def _settings_files(settings: ServerSettings) -> tuple[Path, ...]:
    """Return the configuration file of the server and the default one."""
    return settings.config_file, Path(FILE)


def model_of(settings: ServerSettings, name: str) -> Model:
    """Return a model by its name. Raises SettingsError if it is not available."""
    network = network_of(settings)
    return choose_model(name, os.environ, window=settings.work.window, timeouts=settings.timeouts, network=network)


def network_of(settings: ServerSettings) -> Network:
    """Return the proxies and certificates of outbound connections. Raise SettingsError for a bad value."""
    return Network.from_environment(os.environ, settings.network)


def upstreams_of(settings: ServerSettings, *, gateway_only: bool) -> Mapping[ProviderSdk, Upstream]:
    """Return the providers of the gateway. Skip a provider with an invalid URL or key, with a warning.

    With `gateway_only`, raise SettingsError instead.
    """
    timeouts = replace(settings.timeouts, first_byte=settings.gateway.first_byte)
    upstreams = dict[ProviderSdk, Upstream]()
    for sdk, provider in choose_providers(settings.model, os.environ).items():
        try:
            upstreams[sdk] = make_upstream(provider, os.environ, timeouts, network_of(settings))
        except SettingsError as error:
            if gateway_only:
                raise
            LOGGER.warning("The gateway skips %s: %s", provider.name, error)
    return upstreams
