"""Command-line options shared by the commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from recto.config.setting import settings_of
from recto.config.settings import ServerSettings

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def _setting(name: str, metavar: str) -> object:
    """Build the flag of a setting from its documentation and default."""
    one = next(one for one in settings_of(ServerSettings) if one.name == name)
    default = f"  [default: {one.default}]" if one.default is not None else ""
    # Keep only the text of links.
    return typer.Option(f"--{name.replace('_', '-')}", metavar=metavar, help=LINK.sub(r"\1", one.doc) + default)


Host = Annotated[str | None, _setting("host", "ADDRESS")]
Port = Annotated[int | None, _setting("port", "N")]
DataDir = Annotated[Path | None, _setting("data", "DIR")]
WorkspaceDir = Annotated[Path | None, _setting("workspace", "DIR")]
AgentMode = Annotated[str | None, _setting("mode", "MODE")]
ServedModel = Annotated[str | None, _setting("model", "MODEL")]
GatewayKeys = Annotated[str | None, _setting("gateway_keys", "WHOSE")]
GatewayFold = Annotated[str | None, _setting("gateway_fold", "HOW")]
AgentsDir = Annotated[Path | None, _setting("agents", "DIR")]
ServerConfig = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="TOML file.  [default: recto.toml, if there is one]")
]
Hello = Annotated[bool, typer.Option("--hello", help="Make a first run once it is up, and show it.")]

AgentsToCheck = Annotated[
    Path, typer.Argument(metavar="[DIR]", help="Folder with a folder for each agent.", show_default="agents")
]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings fail too.")]
Offline = Annotated[bool, typer.Option("--offline", help="Do not try servers that agents have tools from.")]
CheckAsJson = Annotated[bool, typer.Option("--json", help="Print agents, problems and warnings as JSON.")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="Its name: the folder's.")]
SkillName = Annotated[str | None, typer.Option("--skill", metavar="NAME", help="The skill that is active.")]
ScenarioName = Annotated[
    str | None, typer.Option("--scenario", metavar="NAME", help="What of it is asked for.  [default: the skill's]")
]
ForUser = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Whose data it is for.")]
Voice = Annotated[str | None, typer.Option("--voice", metavar="NAME", help="The voice_mode.  [default: the agent's]")]
ExplainAsJson = Annotated[bool, typer.Option("--json", help="Print the prompt and why as JSON.")]
AgentToTry = Annotated[Path, typer.Argument(metavar="FOLDER", help="The agent's folder.")]
WordsToSay = Annotated[str, typer.Argument(metavar="WORDS", help="What the user says.")]
TriedModel = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", help="Whatever the agent names.  [default: its own, else the server's]"),
]
AgreeToAll = Annotated[bool, typer.Option("--agree", help="Agree to the calls that a person has to agree to.")]
NewAgent = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, - and _, at most 64.")]
Into = Annotated[Path, typer.Option("--into", metavar="DIR", help="Folder of agents it is made in.")]

CheckOnly = Annotated[
    bool, typer.Option("--check", help="Print the settings in force, secrets hidden, and do not serve.")
]
Reload = Annotated[bool, typer.Option("--reload", help="Start again when an agent or the settings file changes.")]
BackupDir = Annotated[Path, typer.Argument(metavar="DIR", help="Folder to make; it must not hold a database yet.")]
UserArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name; whoever has the local token is `local`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask first.")]
