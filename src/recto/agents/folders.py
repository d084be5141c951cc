"""Loading of all agents in a folder. Broken agents are omitted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recto.agents.agent import CHAT, GATEWAY, Agent
from recto.agents.agent_folder import ReadAgent, Toolbox, load_variants
from recto.config.problem import FileProblem
from recto.config.settings import Limits
from recto.errors import SettingsError

SHIPPED = Path(__file__).parent / "shipped"
RESERVED = f"an agent cannot be named {GATEWAY}: threads of the gateway have that name. Rename the folder."
DUPLICATE = "there is a folder {name} too, so this would be a second agent of that name. Rename one of them."


@dataclass(frozen=True, kw_only=True)
class LoadedAgents(Mapping[str, Agent]):
    """Valid agents and their folders by name, and the problems of broken agents and skills."""

    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    broken: Mapping[str, tuple[FileProblem, ...]] = field(default_factory=dict[str, tuple[FileProblem, ...]])
    broken_skills: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()

    @property
    def problems(self) -> tuple[FileProblem, ...]:
        """Return the problems of all broken agents and skills."""
        return (*[problem for problems in self.broken.values() for problem in problems], *self.broken_skills)

    def __getitem__(self, name: str) -> Agent:
        return self.agents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.agents)

    def __len__(self) -> int:
        return len(self.agents)


def load_agents(
    folder: Path | None, limits: Limits, tools: Toolbox | None = None, *, only: str | None = None
) -> LoadedAgents:
    """Load the shipped agents and the agents of a folder.

    An agent of the folder replaces a shipped agent of the same name, even if it is broken. An agent's own `limits` take
    precedence. Without a toolbox, tool names are not checked. With `only`, the folders of other agents are not read.
    """
    shipped = load_folder(SHIPPED, limits, tools, only=only)
    if folder is None:
        return shipped
    own = load_folder(folder, limits, tools, only=only)
    # An agent that replaces a shipped one also replaces its variants in other languages.
    names = {*own.broken, *[path.name for path in own.folders.values()]}
    shipped_names = [name for name in shipped if name in own or names.isdisjoint((name, shipped.folders[name].name))]
    return LoadedAgents(
        agents={**{name: shipped[name] for name in shipped_names}, **own.agents},
        folders={**{name: shipped.folders[name] for name in shipped_names}, **own.folders},
        broken={**shipped.broken, **own.broken},
        broken_skills=(*shipped.broken_skills, *own.broken_skills),
        warnings=(*shipped.warnings, *own.warnings),
    )


def load_folder(folder: Path, limits: Limits, tools: Toolbox | None = None, *, only: str | None = None) -> LoadedAgents:
    """Load the agents of a folder without the shipped agents. Raise SettingsError if the folder cannot be read."""
    try:
        folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))
    except OSError as error:
        allowed = f"it cannot be read ({error.strerror}). Name a folder of agents"
        raise SettingsError(name="agents", value=str(folder), allowed=allowed) from error
    chosen_folders = [path for path in folders if only is None or only == path.name or only.startswith(f"{path.name}-")]
    read = {path: _read(path, folders, limits, tools) for path in chosen_folders}
    every = [(path, name, one) for path, variants in read.items() for name, one in variants.items()]
    whole = [(path, name, one) for path, name, one in every if not one.problems]
    return LoadedAgents(
        agents={name: one.agent for _, name, one in whole},
        folders={name: path for path, name, _ in whole},
        broken={name: one.problems for _, name, one in every if one.problems},
        broken_skills=tuple(dict.fromkeys([problem for _, _, one in every for problem in one.broken_skills])),
        warnings=tuple(dict.fromkeys([warning for _, _, one in whole for warning in one.warnings])),
    )


def _read(path: Path, folders: Collection[Path], limits: Limits, tools: Toolbox | None) -> Mapping[str, ReadAgent]:
    """Load an agent and its variants. The name of a variant must differ from all folder names."""
    names = {other.name for other in folders if other != path}
    if path.name == GATEWAY:
        return {GATEWAY: _broken_agent(path, RESERVED)}
    read = load_variants(path, limits, tools)
    return {
        name: _broken_agent(path, DUPLICATE.format(name=name)) if name in names else one for name, one in read.items()
    }


def _broken_agent(path: Path, problem: str) -> ReadAgent:
    return ReadAgent(agent=CHAT, problems=(FileProblem(file=path, text=problem),))
