"""The stage a page is set on (S1): the skill a thread works in, and what is known of its user for that skill alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from recto.agents.agent import Agent
from recto.conversation.log import SkillChanged
from recto.conversation.messages import ToolOffer
from recto.page.facts import Phase
from recto.page.prompt.system_prompt import Prompt
from recto.skills.expert import Expert, ExpertInput, expert
from recto.skills.known import KnownData
from recto.skills.skill import Skill
from recto.store.store import Store
from recto.tools.builtin.read_skill_file import read_skill_file
from recto.tools.builtin.use_skill import use_skill
from recto.tools.registry import Registry

LOGGER = logging.getLogger("recto.worker")
CHOOSES, READS = use_skill.__name__, read_skill_file.__name__
WHY_SELECT = "phase select: no skill is active"
WHY_EXECUTE = "phase execute: skill {skill}"


@dataclass(frozen=True, kw_only=True)
class PromptContext:
    """What pages are set for: who speaks, how much is shown, and what may be called."""

    prompt: Prompt
    history: int | None
    budget: int | None
    tools: frozenset[str]
    skill: Skill | None = None
    scenario: str | None = None
    known: KnownData = KnownData()
    choosing: ToolOffer | None = None

    def offers(self, tools: Registry) -> tuple[ToolOffer, ...]:
        """What the model may call of an agent's tools. The one that chooses a skill has the agent's own words."""
        names = [name for name in tools if name in self.tools and name != CHOOSES]
        return (*((self.choosing,) if self.choosing else ()), *tools.offers(names))


def prompt_context(
    agent: Agent, skill: Skill | None, known: KnownData, voice: str | None, tools: Registry
) -> PromptContext:
    """The stage of an agent in a skill, or without one."""
    tone = agent.tone_of(voice)
    prompt = replace(agent.prompt, tone=tone) if tone != agent.prompt.tone else agent.prompt
    if not agent.skills:
        return PromptContext(prompt=prompt, history=agent.history, budget=agent.budget, tools=frozenset(tools))
    phase = agent.execute if skill else agent.select
    if skill is None:
        lean = replace(prompt, why=WHY_SELECT)
        return _stage(agent, phase, lean, offered(agent, None, tools))
    found = expert(skill, known, expertise_of(agent, tone))
    stage = _stage(agent, phase, replace(found.prompt, why=_why(skill, known, found)), offered(agent, skill, tools))
    return replace(stage, skill=skill, scenario=known.scenario, known=known)


def expertise_of(agent: Agent, tone: str) -> ExpertInput:
    """How an agent's experts are written out."""
    return ExpertInput(
        locale=agent.locale,
        tone=tone,
        titles=agent.field_titles,
        max_cases=agent.cases,
        tool_rules=agent.prompt.rules,
    )


def _stage(agent: Agent, phase: Phase, prompt: Prompt, tools: frozenset[str]) -> PromptContext:
    return PromptContext(
        prompt=prompt, history=phase.history, budget=phase.budget, choosing=agent.use_skill[phase.name], tools=tools
    )


def offered(agent: Agent, skill: Skill | None, tools: Registry) -> frozenset[str]:
    """Those no skill names are for all; those of a skill are for it alone, and so is reading its files."""
    if not agent.skills:
        return frozenset(tools)
    named = {name for one in agent.skills.values() for name in one.tools} - {CHOOSES}
    mine = [name for name in skill.tools if name != READS] if skill else []
    general = [name for name in tools if name not in named and name != READS]
    return frozenset((*general, *mine, *((READS,) if skill and skill.files else ())))


def _why(skill: Skill, known: KnownData, found: Expert) -> str:
    scenario = f", scenario {known.scenario}" if known.scenario else ""
    step = f"; next step {found.step.id}" if found.step else ""
    cases = ", ".join(f"{one.case.id} (score {one.score})" for one in found.cases)
    return WHY_EXECUTE.format(skill=skill.name) + scenario + step + (f"; best cases {cases}" if cases else "")


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Whom a skill works for: a user, their tier, the day it is for them, where and in which language they talk."""

    owner: str
    tier: str
    day: date
    locale: str
    thread: str | None = None


async def know(store: Store, asker: Asker, skill: Skill, scenario: str | None) -> KnownData:
    """What a skill declares of a user, and nothing else (S6): one query for the fields, one for its own data."""
    names = tuple(dict.fromkeys(path.split(".")[0] for path in skill.fields))
    fields = await store.profile_fields(asker.owner, names)
    own = await store.skill_data(asker.owner, skill.name) if skill.has_data else None
    chosen = skill.scenario(scenario)
    return KnownData(
        profile=fields,
        skill_data={skill.name: own} if own is not None else {},
        tier=asker.tier,
        scenario=chosen.name if chosen else None,
        month=f"{asker.day:%Y-%m}",
        day=asker.day.isoformat(),
        thread=asker.thread,
        locale=asker.locale,
    )


def skill_of(skills: Mapping[str, Skill], changed: SkillChanged | None) -> Skill | None:
    """The skill a thread works in. One that its agent no longer has is none."""
    if changed is None or changed.skill is None:
        return None
    found = skills.get(changed.skill)
    if found is None and skills:
        LOGGER.warning("skill %s of the thread is not there any more: its pages go on without", changed.skill)
    return found
