"""`recto agents`: check, explain, try and create agents."""

from __future__ import annotations

import sys
from collections.abc import Mapping
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
from recto.page.wire.formats import SPEAKERS

if TYPE_CHECKING:
    pass


AGENT_FILE = """\
---
# All settings are optional. Commented lines show the default, or an example where the default is none.
description: What this agent is for, in one line.
# name: {name}                 # must be the folder's name
# starters: ['What is 12 * 7?']   # up to 6 suggested first messages; default: none

# The model
# model: openai:NAME           # default: the server's. Also {others}, demo
# window: 128000               # tokens of its context window; default: the server's
# vision: true                 # send it pictures; default: the server's for compatible ones, else true
# temperature: 0.7             # default: the model's own; so for the next three
# max_tokens: 4096
# reasoning_effort: medium     # minimal, low, medium or high
# tool_choice: auto            # auto, none, required or the name of a tool
# output: {{type: object}}       # a JSON Schema of the answer; default: none
# options: {{}}                  # more fields of the request, as the provider names them

# Tools
# tools: [current_time, calculator]   # built-in tools; those in tools.py are always available
# confirm: []                  # tools whose calls need approval
# mcp: {{files: {{command: [python, server.py]}}}}   # MCP servers; see docs/external-tools.md
# openapi: {{shop: {{file: shop.yaml}}}}     # services with an OpenAPI file in this folder
# workspace: .                 # the folder its tools work in; default: the server's, else one per thread
# mode: ask                    # actions that need approval: ask, edits or full; default: the server's
# tool_calling: auto           # native, prompt (as text) or auto; default: the server's or the model's
# call_form: fenced            # or tags: the form of calls as text

# Files and knowledge
# file_input: false            # true: users may attach documents and images. Or a table; see docs/agents.md
# quote: We open at nine.      # a reference text in every page; default: none
# datasets: []                 # ids of its knowledge bases

# Language
# locale: en                   # or zh: headings and reminders the model sees
# timezone: Asia/Shanghai      # for requests that name none; default: the server's
# tone: Warm and brief.        # a section of the prompt; default: none; the same for rules
# rules: Calculate with the calculator, never in your head.
# voices: {{warm: Warm and patient.}}   # tones that a request may select with voice_mode; default: none
# voice: warm                  # the default voice; if voices lacks it, the first one
# titles: words                # thread titles: the first words, or model
# client_system: false         # true: a client's system messages extend the system prompt
# client_view: roll_back       # roll back messages that an AG-UI client no longer shows; or ignore

# How much the model sees
# history: all                 # or a number of messages before the current turn
# budget: 8000                 # tokens of the system prompt; default: no limit
# phases: {{select: {{history: 5, budget: 2000}}, execute: {{history: 10, budget: 8000}}}}   # of agents with skills/
# directory_tokens: 1200       # tokens of use_skill with its directory of skills
# activation: model            # or triggers: a user's words activate a skill too; default: as the model needs it
# cases: 2                     # the most worked examples in an expert's prompt
# fold: eager                  # or cost, off, or a table; see docs/agents.md
# compact: {{at: 0.8, least: 1000, keep: 0.3, last: 0.5, again: 0.1}}
# summary: {{tokens: 100000, summary_tokens: 4000, characters_per_message: 20000}}

# Limits of a run; default: the server's [limits]
# limits:
#   steps: 50
#   calls: 128
#   reply_characters: 1000000
#   seconds: 1800
#   tool_seconds: 120
#   tool_characters: 50000
#   failures: 4
#   bad_arguments: 3
#   unusable_replies: 2
#   claims: 20
#   compactions: 3
#   client_seconds: 86400
#   confirm_seconds: 86400
# tiers: {{}}                    # limits of users in other tiers than free, such as {{pro: {{steps: 100}}}}
---

You are {name}, a helpful assistant. Use the tools you have where they help, and say what you did.
"""

TOOLS_TEMPLATE = '''\
"""Tools of the agent {name}: every typed function marked with @tool. The model sees the text of a ToolError."""

from recto import ToolError, tool


@tool(safe_to_repeat=True)
def count_words(text: str) -> int:
    """Count the words of a text."""
    if not text.strip():
        raise ToolError("The text is empty. Pass the text to count.")
    return len(text.split())
'''


def new_files(name: str) -> Mapping[str, str]:
    """Return the files of a new agent's folder by name."""
    _, *others = [f"{provider}:NAME" for provider in SPEAKERS]
    agent = AGENT_FILE.format(name=name, others=", ".join(others))
    return {"AGENT.md": agent, "tools.py": TOOLS_TEMPLATE.format(name=name)}


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
