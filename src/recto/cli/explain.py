"""`recto agents explain`: the system prompt of an agent with the reason for each part. Calls no model."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from recto.agents.agent import Agent
from recto.cli import options
from recto.cli.command import exit_codes
from recto.cli.data import open_existing_store
from recto.cli.external_tools import TryTools, find_external_tools, load_own_tools
from recto.cli.server_entry import tool_probe
from recto.cli.server_settings import load_settings
from recto.config.settings import ServerSettings
from recto.config.table_check import nearest
from recto.config.zones import zone_of_server
from recto.conversation.input.run_input import RunOptions
from recto.conversation.json import Json, dump
from recto.errors import SettingsError
from recto.page.body import EncodedPart, encode_tool
from recto.page.facts import Facts, Turn
from recto.page.manifest import Part
from recto.page.manifest_rows import first_words, rule_fields, why
from recto.page.preamble import parts_taken, system_text
from recto.page.prompt.system_prompt import SystemPrompt
from recto.page.text.tokens import OFFLINE
from recto.page.wire.base import Target
from recto.page.wire.formats import SPEAKERS, wire_named
from recto.skills.known_data import FREE_TIER, SKILL_DATA, KnownData
from recto.skills.skill import CORE, Skill

if TYPE_CHECKING:
    from recto.tools.registry import Registry
    from recto.worker.context.prompt_context import PromptContext


@dataclass(frozen=True, kw_only=True)
class ExplainQuery:
    """Arguments of the command."""

    skill: str | None
    scenario: str | None
    user: str | None
    voice: str | None


@dataclass(frozen=True, kw_only=True)
class AgentExplanation:
    """A system prompt, its tools with token counts, and the data that was read.

    With tool calling by prompt (P11), the prompt contains the tools. `missing` gives the problem of each external tool
    source that failed.
    """

    agent: Agent
    context: PromptContext
    system: SystemPrompt
    tools: tuple[EncodedPart, ...]
    read: dict[str, bool]
    user: str | None
    missing: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return OFFLINE.count((self.system.text,))[0]

    @property
    def tool_tokens(self) -> dict[str, int]:
        """Tokens of each tool by name; 0 if the prompt contains the tools."""
        in_words = self.agent.tool_calling == "prompt"
        return {tool.part.source: 0 if in_words else tool.part.tokens_after for tool in self.tools}

    @property
    def tool_words(self) -> dict[str, str]:
        """First words of each tool's description."""
        return {one.part.source: first_words(one.segment.data, one.part.kind) or "" for one in self.tools}

    @property
    def changes(self) -> tuple[Part, ...]:
        """Parts and tools that were shortened or removed."""
        return (*parts_taken(self.system), *[one.part for one in self.tools if one.part.decision == "cut"])

    def row(self) -> dict[str, Json]:
        """Return the explanation as JSON."""
        context = self.context
        changes = [
            {
                "what": one.source,
                "decision": one.decision,
                "rule": one.rule,
                **rule_fields(one.rule),
                "reason": one.reason,
            }
            for one in self.changes
        ]
        return {
            "agent": self.agent.name,
            "skill": context.skill.name if context.skill else None,
            "scenario": context.data.scenario,
            "user": self.user,
            "why": context.prompt.why,
            "history": context.history,
            "budget": context.budget,
            "tokens": self.tokens,
            "tools": dict(self.tool_tokens),
            "words": dict(self.tool_words),
            "missing": dict(self.missing),
            "read": dict(self.read),
            "changes": changes,
            "over": self.system.over,
            "prompt": self.system.text,
        }

    def lines(self) -> list[str]:
        """Return the explanation as text."""
        context = self.context
        history = "all messages" if context.history is None else f"the newest {context.history} messages"
        budget = "no budget" if context.budget is None else f"a budget of {context.budget}"
        read = ", ".join(f"{path} ({'known' if is_known else 'unknown'})" for path, is_known in self.read.items())
        tools = [f"{name} ({count})" if count else name for name, count in self.tool_tokens.items()]
        is_in_prompt = self.tools and self.agent.tool_calling == "prompt"
        tool_size = "including the tools" if is_in_prompt else f"{sum(self.tool_tokens.values())} of tools"
        lines = [
            f"agent   {self.agent.name}; {context.prompt.why or 'no skills'}",
            f"user    {self.user or 'none (use the data of a user with --user)'}",
            f"read    {read or 'nothing'}",
            f"history {history} before the current turn",
            f"tokens  {self.tokens} of the system prompt, {budget}; {tool_size}",
            *[f"tool    {tool}: {begins}" for tool, begins in zip(tools, self.tool_words.values(), strict=True)],
        ]
        lines += [f"missing tools of {name}: {problem}" for name, problem in self.missing.items()]
        lines += [f"{one.decision:<7} {one.source}: {why(one.rule, one.reason)}" for one in self.changes]
        lines += [f"over    {self.system.over}"] if self.system.over else []
        return [*lines, "", self.system.text]


def explain(
    context: typer.Context,
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
    """Print the system prompt of an agent with the reasons: phase, skill, data, next step, cases, tools, tokens.

    Without --skill, no skill is active. With --user, the prompt contains stored data of that user. Exit codes: 0
    success, 1 failure, 2 usage error.
    """
    query = ExplainQuery(skill=skill, scenario=scenario, user=user, voice=voice)
    with exit_codes("agents explain"):
        settings = load_settings({"agents": agents, "data": data}, os.environ, config)
        with redirect_stdout(sys.stderr):
            agent, tools, missing = _load_agent(settings, name, tool_probe(context))
            explanation = replace(asyncio.run(_explain_agent(settings, query, agent, tools)), missing=missing)
    typer.echo(dump(explanation.row()).decode() if as_json else "\n".join(explanation.lines()))


async def _explain_agent(
    settings: ServerSettings, query: ExplainQuery, agent: Agent, tools: Registry
) -> AgentExplanation:
    from recto.worker.context.prompt_context import NO_REQUEST, build_prompt_context

    skill = agent.skills.get(query.skill or "") if query.skill != CORE else None
    if skill is None and query.skill not in (None, CORE):
        raise _unknown("--skill", str(query.skill), (*agent.skills, CORE))
    if skill is None and query.scenario is not None:
        allowed = "a scenario belongs to a skill. Name the skill with --skill"
        raise SettingsError(name="--scenario", value=query.scenario, allowed=allowed)
    scenarios = [one.name for one in skill.scenarios] if skill else []
    if query.scenario is not None and query.scenario not in scenarios:
        raise _unknown("--scenario", query.scenario, scenarios)
    if query.voice is not None and query.voice not in agent.voices:
        raise _unknown("--voice", query.voice, agent.voices)
    skill_data = await _load_skill_data(settings, skill, query, agent) if skill else KnownData()
    run_request = replace(NO_REQUEST, options=RunOptions(voice_mode=query.voice))
    context = build_prompt_context(agent, tools, run_request, skill, skill_data)
    wire = SPEAKERS.get((agent.model or settings.model).partition(":")[0])
    paths = (*skill.fields, *((f"{SKILL_DATA}.{skill.name}",) if skill.has_data else ())) if skill else ()
    facts = Facts(
        log=(),
        target=Target(wire=wire) if wire else Target(),
        prompt=context.prompt,
        budget=context.budget,
        tools=context.tools,
        tool_calling=agent.tool_calling or "native",
        call_form=agent.call_form,
        turn=Turn(),
        locale=agent.locale,
    )
    return AgentExplanation(
        agent=agent,
        context=context,
        system=system_text(facts),
        tools=tuple([encode_tool(offer, wire_named(facts.target.wire), OFFLINE) for offer in facts.tools]),
        read={path: skill_data.at(path) is not None for path in paths},
        user=query.user,
    )


def _load_agent(
    settings: ServerSettings, name: str, try_tools: TryTools | None
) -> tuple[Agent, Registry, dict[str, str]]:
    """Return the agent, its tools including external ones, and the problems of missing tool sources."""
    from recto.agents.folders import load_agents
    from recto.models.choose import with_defaults
    from recto.tools.registry import Registry

    loaded_agents = load_agents(settings.agents, settings.limits, only=name)
    if name not in loaded_agents:
        loaded_agents = load_agents(settings.agents, settings.limits)
        problems = "; ".join(map(str, loaded_agents.broken.get(name, ())))
        allowed = problems or f"there is none{nearest(name, tuple(loaded_agents))}"
        raise SettingsError(name="AGENT", value=name, allowed=allowed)
    one = replace(loaded_agents, agents={name: loaded_agents[name]})
    tool_sources = find_external_tools(try_tools, settings, one).get(name, ())
    external_tools = [tool for source in tool_sources for tool in source.state.tools]
    missing = {source.name: source.state.problem for source in tool_sources if source.state.problem}
    agent = with_defaults(loaded_agents[name], settings.model, settings.work.tool_calling)
    return agent, Registry((*load_own_tools(loaded_agents, name).values(), *external_tools)), missing


def _unknown(option: str, value: str, names: Collection[str]) -> SettingsError:
    return SettingsError(name=option, value=value, allowed=f"there is none{nearest(value, names)}")


async def _load_skill_data(settings: ServerSettings, skill: Skill, query: ExplainQuery, agent: Agent) -> KnownData:
    from recto.worker.context.prompt_context import load_skill_data

    if query.user is None:
        scenario = skill.scenario(query.scenario)
        return KnownData(scenario=scenario.name if scenario else None)
    async with open_existing_store(settings) as store:
        tier = (await store.users.read_profile(query.user)).tier or FREE_TIER
        day = datetime.now(zone_of_server(agent.timezone or settings.timezone)).date()
        request = KnownData(
            tier=tier, scenario=query.scenario, month=f"{day:%Y-%m}", day=day.isoformat(), locale=agent.locale
        )
        return await load_skill_data(store, query.user, skill, request)
