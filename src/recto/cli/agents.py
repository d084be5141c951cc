"""`recto agents`: check, explain, try and create agents."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recto.agents.agent_folder import FILE, NAME, NAME_RULE, TOOLS_FILE, Toolbox, lint
from recto.agents.agent_warnings import persona_tokens
from recto.agents.file_input import with_reading
from recto.agents.folders import LoadedAgents, load_folder
from recto.agents.template import new_files
from recto.cli import options
from recto.cli.calls.try_agent import try_agent
from recto.cli.command import FAILED, WRONG_USE, group, stop
from recto.cli.explain import explain
from recto.cli.external_tools import add_tool_problems, find_external_tools
from recto.cli.server_entry import tool_probe
from recto.cli.server_settings import AGENTS_HERE
from recto.config.settings import Limits, ServerSettings
from recto.conversation.json import Json, dump
from recto.errors import SettingsError

if TYPE_CHECKING:
    pass

agents = group("agents", "Check, explain, try and create agents.")


@agents.command()
def check(
    context: typer.Context,
    folder: options.AgentsToCheck = AGENTS_HERE,
    *,
    strict: options.Strict = False,
    offline: options.Offline = False,
    as_json: options.CheckAsJson = False,
) -> None:
    """Load every agent of a folder with its tools, and report problems by file and line.

    Also tries the MCP and OpenAPI servers that agents use, with the secrets of this environment.

    Prints problems and warnings to standard error, and one line per valid agent to standard output. Exit codes: 0 no
    problems, 1 problems (with --strict also warnings), 2 usage error.
    """
    try:
        for file in (FILE, TOOLS_FILE):
            if (folder / file).exists():
                allowed = f"it contains {file}, so it is an agent. Name its parent folder: {folder.resolve().parent}"
                raise SettingsError(name="DIR", value=str(folder), allowed=allowed)
        # Keep stdout clean, because a tools.py may print while it is imported.
        with redirect_stdout(sys.stderr):
            tools = load_toolbox()
            loaded_agents = load_folder(folder, Limits(), tools)
            findings = [
                one for name in loaded_agents for one in lint(loaded_agents[name], loaded_agents.folders[name], tools)
            ]
            loaded_agents = replace(loaded_agents, warnings=tuple(dict.fromkeys((*loaded_agents.warnings, *findings))))
            tool_sources = find_external_tools(
                None if offline else tool_probe(context), ServerSettings(), loaded_agents
            )
            loaded_agents = add_tool_problems(loaded_agents, tool_sources)
    except SettingsError as error:
        raise stop("agents check", error, WRONG_USE) from error
    rows: list[dict[str, Json]] = []
    for name, agent in loaded_agents.items():
        names = [
            *with_reading(agent.tools, agent.file_input.takes_documents),
            *tools.of_folder(loaded_agents.folders[name]),
            *[tool.name for source in tool_sources.get(name, ()) for tool in source.state.tools],
        ]
        fields = {"name": agent.name, "description": agent.description, "model": agent.model, "tools": names}
        more = {"skills": list(agent.skills), "locale": agent.locale, "tokens": persona_tokens(agent)}
        rows.append({**fields, **more})
    if as_json:
        problems = [one.row() for one in loaded_agents.problems]
        warnings = [one.row() for one in loaded_agents.warnings]
        typer.echo(dump({"agents": rows, "problems": problems, "warnings": warnings}).decode())
    else:
        _print_lines(loaded_agents, rows, folder)
    empty = not loaded_agents and not loaded_agents.problems
    if loaded_agents.problems or (strict and (loaded_agents.warnings or empty)):
        raise typer.Exit(FAILED)


agents.command()(explain)
agents.command("try")(try_agent)


@agents.command()
def new(name: options.NewAgent, *, into: options.Into = AGENTS_HERE) -> None:
    """Create an agent: a folder with AGENT.md, which shows every setting, and tools.py with one tool.

    Exit codes: 0 success, 1 failure, 2 usage error.
    """
    if not NAME.fullmatch(name):
        raise stop("agents new", f"{name!r} is not a valid name: {NAME_RULE}.", WRONG_USE)
    folder = into / name
    try:
        folder.mkdir(parents=True)
        for file, text in new_files(name).items():
            (folder / file).write_text(text, encoding="utf-8")
    except FileExistsError as error:
        problem = f"{error.filename} exists. Choose another name, or another folder with --into."
        raise stop("agents new", problem, WRONG_USE) from error
    except OSError as error:
        raise stop("agents new", f"{folder} cannot be created ({error.strerror}).", FAILED) from error
    typer.echo(f"Created {folder} with {FILE} (instructions and settings) and {TOOLS_FILE} (tools). Next:")
    # `recto serve` finds the folder `agents` in the current directory by itself.
    folder_argument, flag = ("", "") if into == AGENTS_HERE else (f" {into}", f" --agents {into}")
    typer.echo(f"  recto agents check{folder_argument}")
    typer.echo(f'  recto agents try {folder} "How many words are in this?"')
    typer.echo(f"  RECTO_AGENT={name} recto serve{flag}")


def load_toolbox() -> Toolbox:
    """Return the available tools for loading agents. The tools of a folder are imported once per toolbox."""
    # Imported here: creating an agent does not need these.
    from recto.tools.load_tools import load_folder_tools, load_package_tools, make_built_in_tools
    from recto.tools.registry import Registry

    packages = load_package_tools()

    @cache
    def of_folder(folder: Path) -> Registry:
        return Registry((*packages, *load_folder_tools(folder)))

    built_in = tuple([tool.name for tool in make_built_in_tools()])
    return Toolbox(built_in=built_in, of_folder=of_folder, warnings_of=lambda folder: of_folder(folder).warnings)


def _print_lines(loaded_agents: LoadedAgents, rows: list[dict[str, Json]], folder: Path) -> None:
    for problem in loaded_agents.problems:
        typer.echo(str(problem), err=True)
    for warning in loaded_agents.warnings:
        typer.echo(f"{warning} (warning)", err=True)
    if not loaded_agents and not loaded_agents.problems:
        typer.echo(f"{folder}: the folder contains no agents. Create one: recto agents new NAME (warning)", err=True)
    for row in rows:
        tools = ", ".join(map(str, row["tools"])) if isinstance(row["tools"], list) and row["tools"] else "none"
        model = row["model"] or "the server's"
        skill_names = ", ".join(map(str, row["skills"])) if isinstance(row["skills"], list) else ""
        skills = f"skills {skill_names}; " if skill_names else ""
        line = f"{row['name']}: model {model}; tools {tools}; {skills}locale {row['locale']}; {row['tokens']} tokens"
        typer.echo(line)
