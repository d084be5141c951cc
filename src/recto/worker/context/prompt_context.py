"""The prompt and tools of a page (S1): the agent's, those of the skill its thread works in, and what the client says.

Of a user, a skill knows what it declares and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recto.agents.agent import Agent, Sampling
from recto.conversation.input.run_input import ContextItem
from recto.conversation.log import SkillChanged, View
from recto.conversation.messages import DeveloperMessage, Message, SystemMessage, ToolOffer
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
# How a client's system message is announced to the model, among the context.
CLIENT_SAYS = "instructions of the client"
FREE, REQUIRED = (None, "auto", "none"), "required"


@dataclass(frozen=True, kw_only=True)
class PromptContext:
    """What a page is made for: who speaks, how much is shown, and what may be called."""

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
    """What the pages of an agent are made for, in a skill or without one."""
    tone = agent.tone_of(voice)
    prompt = replace(agent.prompt, tone=tone) if tone != agent.prompt.tone else agent.prompt
    if not agent.skills:
        return PromptContext(prompt=prompt, history=agent.history, budget=agent.budget, tools=frozenset(tools))
    if skill is None:
        return _in_phase(agent, agent.select, replace(prompt, why=WHY_SELECT), offered(agent, None, tools))
    found = expert(skill, known, _expert_input(agent, tone))
    explained = replace(found.prompt, why=_why(skill, known, found))
    context = _in_phase(agent, agent.execute, explained, offered(agent, skill, tools))
    return replace(context, skill=skill, scenario=known.scenario, known=known)


def _in_phase(agent: Agent, phase: Phase, prompt: Prompt, tools: frozenset[str]) -> PromptContext:
    return PromptContext(
        prompt=prompt, history=phase.history, budget=phase.budget, choosing=agent.use_skill[phase.name], tools=tools
    )


def _expert_input(agent: Agent, tone: str) -> ExpertInput:
    return ExpertInput(
        locale=agent.locale,
        tone=tone,
        titles=agent.field_titles,
        max_cases=agent.cases,
        tool_rules=agent.prompt.rules,
    )


def _why(skill: Skill, known: KnownData, found: Expert) -> str:
    scenario = f", scenario {known.scenario}" if known.scenario else ""
    step = f"; next step {found.step.id}" if found.step else ""
    cases = ", ".join(f"{one.case.id} (score {one.score})" for one in found.cases)
    return WHY_EXECUTE.format(skill=skill.name) + scenario + step + (f"; best cases {cases}" if cases else "")


def offered(agent: Agent, skill: Skill | None, tools: Registry) -> frozenset[str]:
    """Those no skill names are for all; those of a skill are for it alone, and so is reading its files."""
    if not agent.skills:
        return frozenset(tools)
    named = {name for one in agent.skills.values() for name in one.tools} - {CHOOSES}
    mine = [name for name in skill.tools if name != READS] if skill else []
    general = [name for name in tools if name not in named and name != READS]
    return frozenset((*general, *mine, *((READS,) if skill and skill.files else ())))


async def know(store: Store, owner: str, skill: Skill, asked: KnownData) -> KnownData:
    """What is known of a user: what the request says (`asked`), and what the skill declares, nothing else (S6).

    One query for the fields, one for the skill's own data.
    """
    names = tuple(dict.fromkeys(path.split(".")[0] for path in skill.fields))
    fields = await store.profile_fields(owner, names)
    own = await store.skill_data(owner, skill.name) if skill.has_data else None
    chosen = skill.scenario(asked.scenario)
    return replace(
        asked,
        profile=fields,
        skill_data={skill.name: own} if own is not None else {},
        scenario=chosen.name if chosen else None,
    )


def skill_of(skills: Mapping[str, Skill], changed: SkillChanged | None) -> Skill | None:
    """The skill a thread works in. One that its agent no longer has is none."""
    if changed is None or changed.skill is None:
        return None
    found = skills.get(changed.skill)
    if found is None and skills:
        LOGGER.warning("skill %s of the thread is not there any more: its pages go on without", changed.skill)
    return found


def with_client_system(agent: Agent, prompt: Prompt, messages: Sequence[Message]) -> Prompt:
    """The prompt with what a client's system and developer messages say, where its agent lets them."""
    said = _client_system(messages) if agent.client_system else []
    return replace(prompt, identity="\n\n".join([prompt.identity, *said])) if said else prompt


def as_context(messages: Sequence[Message]) -> tuple[ContextItem, ...]:
    """A client's system and developer messages, with no more weight than what a user says (P3)."""
    return tuple(ContextItem(description=CLIENT_SAYS, value=text) for text in _client_system(messages))


def _client_system(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, (SystemMessage, DeveloperMessage))]


def sampled(agent: Agent, seen: View, offers: Sequence[ToolOffer]) -> Sampling:
    """How the model is asked now. Made to call a tool once in a turn, it may answer then; one there is not, never."""
    sampling = agent.sampling
    has_acted = any(message.role == "tool" for message in seen.messages[seen.turn_start :])
    is_there = sampling.tool_choice == REQUIRED or sampling.tool_choice in [offer.name for offer in offers]
    if sampling.tool_choice in FREE or (is_there and not has_acted):
        return sampling
    return replace(sampling, tool_choice="auto")
