"""`recto agents explain`: the prompt an agent would have, in a skill and for a user, and why. It calls no model."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from recto.agents.agent import Agent
from recto.cli import options
from recto.cli.data import opened_store
from recto.cli.server_settings import ServerSettings, load_settings
from recto.config.checked import nearest
from recto.config.zones import zone_of_server
from recto.errors import RectoError, SettingsError
from recto.page.canonical import Json, dump
from recto.page.facts import Facts
from recto.page.fit import Target, WireName
from recto.page.front import system_text
from recto.page.galley import set_tool
from recto.page.manifest import Part
from recto.page.prompt import Change, SystemPrompt
from recto.page.tokens import OFFLINE
from recto.skills.known import FREE_TIER, SKILL_DATA, Known
from recto.skills.skill import CORE, Skill

if TYPE_CHECKING:
    from recto.tools.registry import Registry
    from recto.worker.staging import Stage

FAILED, WRONG_USE = 1, 2
NOBODY = "nobody: name one with --user to see what is kept of them"
OF_SKILL = "scenarios are those of a skill. Name the skill with --skill"


@dataclass(frozen=True, kw_only=True)
class Asked:
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
    stage: Stage
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
    def changes(self) -> tuple[Change | Part, ...]:
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
    asked = Asked(agent=name, skill=skill, scenario=scenario, user=user, voice=voice)
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


async def _explained(settings: ServerSettings, asked: Asked) -> Explained:
    from recto.worker.staging import stage_of  # here: no other command waits for what runs need

    agent, tools = _agent(settings, asked.agent)
    skill = _skill(agent, asked)
    if asked.voice is not None and asked.voice not in agent.voices:
        raise _unknown("--voice", asked.voice, agent.voices)
    known = await _known(settings, skill, asked, agent) if skill else Known()
    stage = stage_of(agent, skill, known, asked.voice, tools)
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
        tools=tuple([set_tool(offer, facts.target.wire, OFFLINE).part for offer in facts.tools]),
        read={path: known.at(path) is not None for path in _declared(skill)} if skill else {},
        user=asked.user,
    )


def _agent(settings: ServerSettings, name: str) -> tuple[Agent, Registry]:
    from recto.agents.folders import load_agents
    from recto.tools.load import tools_built_in, tools_of_agent, tools_of_folder, tools_of_packages
    from recto.tools.registry import Registry

    loaded = load_agents(settings.agents, settings.limits)
    if name not in loaded:
        why = "; ".join(map(str, loaded.broken.get(name, ())))
        raise SettingsError(name="AGENT", value=name, allowed=why or f"there is none{nearest(name, tuple(loaded))}")
    own = (*tools_of_packages(), *tools_of_folder(loaded.folders[name]))
    return loaded[name], Registry((*tools_of_agent(loaded[name], Registry(tools_built_in())), *own))


def _wire(model: str) -> WireName:
    return "anthropic" if model.startswith("anthropic:") else "openai"


def _skill(agent: Agent, asked: Asked) -> Skill | None:
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


async def _known(settings: ServerSettings, skill: Skill, asked: Asked, agent: Agent) -> Known:
    from recto.worker.staging import Asker, know

    if asked.user is None:
        chosen = skill.scenario(asked.scenario)
        return Known(scenario=chosen.name if chosen else None)
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
