"""`recto agents`: check a folder of agents, or begin a new one. Refuses to run them: that is the server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recto.agents.agent import Agent
from recto.agents.agent_folder import FILE, NAME, NAME_RULE, TOOLS_FILE, Toolbox, lint
from recto.agents.agent_warnings import persona_tokens
from recto.agents.file_input import with_reading
from recto.agents.folders import Loaded, load_folder
from recto.agents.template import new_files
from recto.cli import options
from recto.cli.data import opened_store
from recto.cli.server_settings import load_settings
from recto.config.checked import nearest
from recto.config.settings import Limits, ServerSettings
from recto.config.zones import zone_of_server
from recto.conversation.json import Json, dump
from recto.errors import RectoError, SettingsError
from recto.page.body import encode_tool
from recto.page.facts import Facts
from recto.page.manifest import Part
from recto.page.preamble import system_text
from recto.page.prompt.system_prompt import PromptCut, SystemPrompt
from recto.page.steps.fit import Target, WireName
from recto.page.text.tokens import OFFLINE
from recto.skills.known import FREE_TIER, SKILL_DATA, KnownData
from recto.skills.skill import CORE, Skill

if TYPE_CHECKING:
    from recto.tools.registry import Registry
    from recto.worker.context.prompt_context import PromptContext

FAILED, WRONG_USE = 1, 2
NOBODY = "nobody: name one with --user to see what is kept of them"
OF_SKILL = "scenarios are those of a skill. Name the skill with --skill"


@dataclass(frozen=True, kw_only=True)
class ExplainRequest:
    """What is to be explained."""

    agent: str
    skill: str | None
    scenario: str | None
    user: str | None
    voice: str | None


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A stage as it would be: its prompt within its budget, the tools with their tokens, what was read of whom.

    Where tools are told of in words (P11), the prompt has them and their tokens.
    """

    agent: Agent
    stage: PromptContext
    told: SystemPrompt
    tools: tuple[Part, ...]
    read: dict[str, bool]
    user: str | None

    @property
    def tokens(self) -> int:
        """Those of the prompt."""
        return OFFLINE.count((self.told.text,))[0]

    @property
    def tool_tokens(self) -> dict[str, int]:
        """Those of each tool beside the prompt."""
        in_words = self.agent.tool_calling == "prompt"
        return {tool.source: 0 if in_words else tool.tokens_after for tool in self.tools}

    @property
    def changes(self) -> tuple[PromptCut | Part, ...]:
        """What is told shorter than it might be."""
        return (*self.told.changes, *[tool for tool in self.tools if tool.decision == "cut"])


def explain(
    name: options.AgentName,
    *,
    skill: options.SkillName = None,
    scenario: options.ScenarioName = None,
    user: options.ForUser = None,
    voice: options.Voice = None,
    agents: options.AgentsDir = None,
    data: options.DataDir = None,
    config: options.ServerConfig = None,
    as_json: options.ExplainAsJson = False,
) -> None:
    """Print the system prompt an agent would have, and why: phase, skill, data, next step, cases, tools, tokens.

    Without --skill it is that of a thread without one. With --user it is for what the server keeps of them; nothing is
    changed. Exit codes: 0 done, 1 failed, 2 wrong use.
    """
    asked = ExplainRequest(agent=name, skill=skill, scenario=scenario, user=user, voice=voice)
    try:
        settings = load_settings({"agents": agents, "data": data}, os.environ, config)
        with redirect_stdout(sys.stderr):
            found = asyncio.run(_explained(settings, asked))
    except SettingsError as error:
        typer.echo(f"recto agents explain: {error}", err=True)
        raise typer.Exit(WRONG_USE) from error
    except (RectoError, OSError) as error:
        typer.echo(f"recto agents explain: {error}", err=True)
        raise typer.Exit(FAILED) from error
    typer.echo(dump(_explained_row(found)).decode() if as_json else "\n".join(_lines(found)))


async def _explained(settings: ServerSettings, asked: ExplainRequest) -> Explained:
    from recto.worker.context.prompt_context import prompt_context

    agent, tools = _agent(settings, asked.agent)
    skill = _skill(agent, asked)
    if asked.voice is not None and asked.voice not in agent.voices:
        raise _unknown("--voice", asked.voice, agent.voices)
    known = await _known(settings, skill, asked, agent) if skill else KnownData()
    stage = prompt_context(agent, skill, known, asked.voice, tools)
    facts = Facts(
        log=(),
        target=Target(wire=_wire(agent.model or settings.model)),
        prompt=stage.prompt,
        budget=stage.budget,
        tools=stage.offers(tools),
        tool_calling=agent.tool_calling,
        locale=agent.locale,
    )
    return Explained(
        agent=agent,
        stage=stage,
        told=system_text(facts),
        tools=tuple([encode_tool(offer, facts.target.wire, OFFLINE).part for offer in facts.tools]),
        read={path: known.at(path) is not None for path in _declared(skill)} if skill else {},
        user=asked.user,
    )


def _agent(settings: ServerSettings, name: str) -> tuple[Agent, Registry]:
    from recto.agents.folders import load_agents
    from recto.tools.load_tools import tools_built_in, tools_of_agent, tools_of_folder, tools_of_packages
    from recto.tools.registry import Registry

    loaded = load_agents(settings.agents, settings.limits)
    if name not in loaded:
        why = "; ".join(map(str, loaded.broken.get(name, ())))
        raise SettingsError(name="AGENT", value=name, allowed=why or f"there is none{nearest(name, tuple(loaded))}")
    own = (*tools_of_packages(), *tools_of_folder(loaded.folders[name]))
    return loaded[name], Registry((*tools_of_agent(loaded[name], Registry(tools_built_in())), *own))


def _wire(model: str) -> WireName:
    return "anthropic" if model.startswith("anthropic:") else "openai"


def _skill(agent: Agent, asked: ExplainRequest) -> Skill | None:
    if asked.skill in (None, CORE):
        if asked.scenario is not None:
            raise SettingsError(name="--scenario", value=asked.scenario, allowed=OF_SKILL)
        return None
    skill = agent.skills.get(asked.skill or "")
    if skill is None:
        raise _unknown("--skill", str(asked.skill), (*agent.skills, CORE))
    scenarios = [one.name for one in skill.scenarios]
    if asked.scenario is not None and asked.scenario not in scenarios:
        raise _unknown("--scenario", asked.scenario, scenarios)
    return skill


def _unknown(option: str, value: str, known: Collection[str]) -> SettingsError:
    return SettingsError(name=option, value=value, allowed=f"there is none{nearest(value, known)}")


async def _known(settings: ServerSettings, skill: Skill, asked: ExplainRequest, agent: Agent) -> KnownData:
    from recto.worker.context.prompt_context import Asker, know

    if asked.user is None:
        chosen = skill.scenario(asked.scenario)
        return KnownData(scenario=chosen.name if chosen else None)
    async with opened_store(settings) as store:
        tier = (await store.whole_profile(asked.user)).tier or FREE_TIER
        day = datetime.now(zone_of_server(agent.timezone or settings.timezone)).date()
        asker = Asker(owner=asked.user, tier=tier, day=day, locale=agent.locale)
        return await know(store, asker, skill, asked.scenario)


def _declared(skill: Skill) -> tuple[str, ...]:
    return (*skill.fields, *((f"{SKILL_DATA}.{skill.name}",) if skill.has_data else ()))


def _explained_row(found: Explained) -> dict[str, Json]:
    stage = found.stage
    changes = [{"what": one.source, "decision": one.decision, "reason": one.reason} for one in found.changes]
    return {
        "agent": found.agent.name,
        "skill": stage.skill.name if stage.skill else None,
        "scenario": stage.scenario,
        "user": found.user,
        "why": stage.prompt.why,
        "history": stage.history,
        "budget": stage.budget,
        "tokens": found.tokens,
        "tools": dict(found.tool_tokens),
        "read": dict(found.read),
        "changes": changes,
        "over": found.told.over,
        "prompt": found.told.text,
    }


def _lines(found: Explained) -> list[str]:
    stage = found.stage
    history = "all messages" if stage.history is None else f"the newest {stage.history} messages"
    budget = "no budget" if stage.budget is None else f"a budget of {stage.budget}"
    read = ", ".join(f"{path} ({'known' if is_known else 'not known'})" for path, is_known in found.read.items())
    tools = [f"{name} ({count})" if count else name for name, count in found.tool_tokens.items()]
    lines = [
        f"agent   {found.agent.name}; {stage.prompt.why or 'it has no skills'}",
        f"user    {found.user or NOBODY}",
        f"read    {read or 'nothing'}",
        f"history {history} before the current turn",
        f"tokens  {found.tokens} of the system prompt, {budget}; {_of_tools(found)}",
        f"tools   {', '.join(tools) or 'none'}",
    ]
    lines += [f"{one.decision:<7} {one.source}: {one.reason}" for one in found.changes]
    lines += [f"over    {found.told.over}"] if found.told.over else []
    return [*lines, "", found.told.text]


def _of_tools(found: Explained) -> str:
    if found.tools and found.agent.tool_calling == "prompt":
        return "it tells of the tools too"
    return f"{sum(found.tool_tokens.values())} of tools"


agents = typer.Typer(
    name="agents",
    help="Check the folder of your agents, explain one, or begin a new one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@agents.command()
def check(
    folder: options.AgentsToCheck, *, strict: options.Strict = False, as_json: options.CheckAsJson = False
) -> None:
    """Load every agent of a folder, tools included, and say what is wrong with which line of which file.

    Problems and warnings go to standard error, a line for each good agent to standard output. Exit codes: 0 all are
    good, 1 there are problems (or warnings, with --strict), 2 wrong use.
    """
    try:
        # What a tools.py prints while it is imported is no answer of ours.
        with redirect_stdout(sys.stderr):
            tools = load_toolbox()
            loaded = load_folder(_of_agents(folder), Limits(), tools)
            linted = [one for name in loaded for one in lint(loaded[name], loaded.folders[name], tools)]
            loaded = replace(loaded, warnings=tuple(dict.fromkeys((*loaded.warnings, *linted))))
    except SettingsError as error:
        raise _refused("check", str(error)) from error
    rows = [_row(agent, loaded.folders[name], tools) for name, agent in loaded.items()]
    if as_json:
        _print_json(loaded, rows)
    else:
        _print_lines(loaded, rows, folder)
    empty = not loaded and not loaded.problems
    if loaded.problems or (strict and (loaded.warnings or empty)):
        raise typer.Exit(FAILED)


agents.command()(explain)


@agents.command()
def new(name: options.NewAgent, *, into: options.Into = Path("agents")) -> None:
    """Begin an agent: a folder with AGENT.md, which shows every setting, and tools.py, which has one tool.

    Exit codes: 0 done, 1 failed, 2 wrong use.
    """
    if not NAME.fullmatch(name):
        raise _refused("new", f"{name!r} is no name: {NAME_RULE}.")
    folder = into / name
    try:
        folder.mkdir(parents=True)
        for file, text in new_files(name).items():
            (folder / file).write_text(text, encoding="utf-8")
    except FileExistsError as error:
        raise _refused(
            "new", f"{error.filename} exists. Choose another name, or another folder with --into."
        ) from error
    except OSError as error:
        typer.echo(f"recto agents new: {folder} cannot be made ({error.strerror}).", err=True)
        raise typer.Exit(FAILED) from error
    typer.echo(f"Made {folder} with {FILE} (who it is, and its settings) and {TOOLS_FILE} (what it can do). Next:")
    typer.echo(f"  recto agents check {into}")
    typer.echo(f"  RECTO_AGENT={name} recto serve --agents {into}")


def load_toolbox() -> Toolbox:
    """What tools there are, for loading agents. A folder's tools are imported once in the life of a toolbox."""
    # Here: making an agent does not wait for what its tools would need.
    from recto.tools.load_tools import tools_built_in, tools_of_folder, tools_of_packages
    from recto.tools.registry import Registry

    packages = tools_of_packages()

    @cache
    def of_folder(folder: Path) -> Collection[str]:
        return tuple(Registry((*packages, *tools_of_folder(folder))))

    return Toolbox(built_in=tuple([tool.name for tool in tools_built_in()]), of_folder=of_folder)


def _of_agents(folder: Path) -> Path:
    for file in (FILE, TOOLS_FILE):
        if (folder / file).exists():
            allowed = f"it has {file}, so it is an agent itself. Name the folder it is in: {folder.resolve().parent}"
            raise SettingsError(name="DIR", value=str(folder), allowed=allowed)
    return folder


def _refused(command: str, text: str) -> typer.Exit:
    typer.echo(f"recto agents {command}: {text}", err=True)
    return typer.Exit(WRONG_USE)


def _row(agent: Agent, folder: Path, tools: Toolbox) -> dict[str, Json]:
    return {
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "tools": [*with_reading(agent.tools, agent.file_input.takes_documents), *tools.of_folder(folder)],
        "skills": list(agent.skills),
        "locale": agent.locale,
        "tokens": persona_tokens(agent),
    }


def _print_json(loaded: Loaded, rows: list[dict[str, Json]]) -> None:
    problems, warnings = [one.row() for one in loaded.problems], [one.row() for one in loaded.warnings]
    typer.echo(dump({"agents": rows, "problems": problems, "warnings": warnings}).decode())


def _print_lines(loaded: Loaded, rows: list[dict[str, Json]], folder: Path) -> None:
    for problem in loaded.problems:
        typer.echo(str(problem), err=True)
    for warning in loaded.warnings:
        typer.echo(f"{warning} (warning)", err=True)
    if not loaded and not loaded.problems:
        typer.echo(f"{folder}: there are no agents in it. Begin one: recto agents new NAME (warning)", err=True)
    for row in rows:
        tools = ", ".join(map(str, row["tools"])) if isinstance(row["tools"], list) and row["tools"] else "none"
        model = row["model"] or "the server's"
        skills = (
            f"skills {', '.join(map(str, row['skills']))}; "
            if isinstance(row["skills"], list) and row["skills"]
            else ""
        )
        line = f"{row['name']}: model {model}; tools {tools}; {skills}locale {row['locale']}; {row['tokens']} tokens"
        typer.echo(line)
