"""Agents of a folder: each folder in it is an agent, by its name; `AGENT.md` in it says who it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recto.agents.agent import CHAT, Agent, Limits
from recto.errors import SettingsError
from recto.page import Prompt

FILE = "AGENT.md"


def load_agents(folder: Path | None, limits: Limits) -> Mapping[str, Agent]:
    """The built-in agent and those of a folder; one of the same name takes its place."""
    agents = [CHAT] if folder is None else [CHAT, *map(_agent, _folders(folder))]
    return {agent.name: replace(agent, limits=limits) for agent in agents}


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))
    except OSError as error:
        allowed = f"it cannot be read ({error.strerror}). Name a folder of agents"
        raise SettingsError(name="agents", value=str(folder), allowed=allowed) from error


def _agent(folder: Path) -> Agent:
    file = folder / FILE
    try:
        persona = file.read_text(encoding="utf-8").strip() if file.exists() else ""
    except (OSError, ValueError) as error:
        raise SettingsError(name="agents", value=str(file), allowed=f"it cannot be read ({error})") from error
    return replace(CHAT, name=folder.name, prompt=Prompt(identity=persona) if persona else CHAT.prompt)
