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
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file.  [default: recto.toml, if it exists]")
]
Hello = Annotated[bool, typer.Option("--hello", help="Run an example after the start and print it.")]

AgentsToCheck = Annotated[
    Path, typer.Argument(metavar="[DIR]", help="Folder that contains the agent folders.", show_default="agents")
]
Strict = Annotated[bool, typer.Option("--strict", help="Treat warnings as problems.")]
Offline = Annotated[bool, typer.Option("--offline", help="Do not connect to MCP and OpenAPI servers.")]
CheckAsJson = Annotated[bool, typer.Option("--json", help="Print agents, problems and warnings as JSON.")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="Name of the agent: that of its folder.")]
SkillName = Annotated[str | None, typer.Option("--skill", metavar="NAME", help="Active skill.")]
ScenarioName = Annotated[
    str | None, typer.Option("--scenario", metavar="NAME", help="Scenario of the skill.  [default: the skill's]")
]
ForUser = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Name of the user.")]
Voice = Annotated[str | None, typer.Option("--voice", metavar="NAME", help="Voice mode.  [default: the agent's]")]
ExplainAsJson = Annotated[bool, typer.Option("--json", help="Print the prompt and its reasons as JSON.")]
AgentToTry = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the agent.")]
MessageText = Annotated[str, typer.Argument(metavar="MESSAGE", help="Message to the agent.")]
TryModel = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", help="Model to use.  [default: the agent's, else the server's]"),
]
ApproveAll = Annotated[bool, typer.Option("--agree", help="Approve all tool calls that need approval.")]
NewAgent = Annotated[str, typer.Argument(metavar="NAME", help="At most 64 letters, digits, - and _.")]
Into = Annotated[Path, typer.Option("--into", metavar="DIR", help="Folder of agents.")]

CheckOnly = Annotated[bool, typer.Option("--check", help="Print the effective settings, without secrets, and exit.")]
Reload = Annotated[bool, typer.Option("--reload", help="Restart when an agent or the settings file changes.")]
BackupDir = Annotated[Path, typer.Argument(metavar="DIR", help="New folder. It must not contain a database.")]
UserArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the user; `local` is the user of the local token.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
