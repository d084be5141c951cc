"""Options of the commands: what each is called, what it takes, and the line of help about it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from recto.config.setting import settings_of
from recto.config.settings import ServerSettings


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"recto {version('recto')}")
        raise typer.Exit


OptionNames: TypeAlias = list[str] | None

Version = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
]
SessionSource = Annotated[
    str, typer.Argument(metavar="FILE", help="A conversation or session file; `-`: standard input.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print messages, manifest and tokens as JSON.")]
Every = Annotated[bool, typer.Option("--all", help="List each fold, not each file.")]
Root = Annotated[str | None, typer.Option(metavar="DIR", help="Project root; paths of reads are taken relative to it.")]
Now = Annotated[
    str | None, typer.Option(metavar="ISO", help="Time that ages are taken at.  [default: the newest timestamp]")
]
Keep = Annotated[int | None, typer.Option(metavar="N", help="Newest reads of a file that stay.  [default: 5]")]
ReadTool = Annotated[OptionNames, typer.Option(metavar="NAME", help="Name of a tool that reads files. Repeatable.")]
PathArg = Annotated[OptionNames, typer.Option(metavar="NAME", help="Its argument that names the file. Repeatable.")]
TerminalTool = Annotated[
    OptionNames, typer.Option(metavar="NAME", help="Name of a tool that runs commands. Repeatable.")
]
SearchTool = Annotated[
    OptionNames, typer.Option(metavar="NAME", help="Name of a search tool; turns --search on. Repeatable.")
]
Search = Annotated[bool, typer.Option("--search", help="Fold old search results too.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file with a [fold] table.")]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Log each page; twice: each file.")
]


def _setting(name: str, metavar: str) -> object:
    """The flag of a setting: its name, its sentence and its default are those of the setting."""
    one = next(one for one in settings_of(ServerSettings) if one.name == name)
    default = f"  [default: {one.default}]" if one.default is not None else ""
    return typer.Option(f"--{name.replace('_', '-')}", metavar=metavar, help=one.doc + default)


Host = Annotated[str | None, _setting("host", "ADDRESS")]
Port = Annotated[int | None, _setting("port", "N")]
DataDir = Annotated[Path | None, _setting("data", "DIR")]
AgentsDir = Annotated[Path | None, _setting("agents", "DIR")]
ServerConfig = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="TOML file.  [default: recto.toml, if there is one]")
]
Hello = Annotated[bool, typer.Option("--hello", help="Make a first run once it is up, and show it.")]

AgentsToCheck = Annotated[Path, typer.Argument(metavar="DIR", help="Folder with a folder for each agent.")]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings fail too.")]
CheckAsJson = Annotated[bool, typer.Option("--json", help="Print agents, problems and warnings as JSON.")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="Its name: the folder's.")]
SkillName = Annotated[str | None, typer.Option("--skill", metavar="NAME", help="The skill that is active.")]
ScenarioName = Annotated[
    str | None, typer.Option("--scenario", metavar="NAME", help="What of it is asked for.  [default: the skill's]")
]
ForUser = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Whose data it is for.")]
Voice = Annotated[str | None, typer.Option("--voice", metavar="NAME", help="The voice_mode.  [default: the agent's]")]
ExplainAsJson = Annotated[bool, typer.Option("--json", help="Print the prompt and why as JSON.")]
NewAgent = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, - and _, at most 64.")]
Into = Annotated[Path, typer.Option("--into", metavar="DIR", help="Folder of agents it is made in.")]

CheckOnly = Annotated[
    bool, typer.Option("--check", help="Print the settings in force, secrets hidden, and do not serve.")
]
Reload = Annotated[bool, typer.Option("--reload", help="Start again when an agent or the settings file changes.")]
BackupDir = Annotated[Path, typer.Argument(metavar="DIR", help="Folder to make; it must not hold a database yet.")]
UserArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name; whoever has the local token is `local`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask first.")]
