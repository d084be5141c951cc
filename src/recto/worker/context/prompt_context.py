"""The prompt and tools of a call (S1): the agent's, those of the skill its thread works in, and what the client says.

Of a user, a skill knows what it declares and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recto.agents.agent import Agent, Sampling
from recto.conversation.input.run_input import ContextItem, RunInput
from recto.conversation.log import SkillChanged, View
from recto.conversation.messages import DeveloperMessage, SystemMessage, ToolOffer
from recto.page.facts import Phase
from recto.page.prompt.system_prompt import Prompt
from recto.skills.expert import Expert, ExpertInput, expert
from recto.skills.known import KnownData
from recto.skills.skill import Skill
from recto.tools.builtin.read_skill_file import read_skill_file
from recto.tools.builtin.use_skill import use_skill
from recto.tools.registry import Registry

if TYPE_CHECKING:
    from recto.store.store import Store  # here: who explains a prompt does not wait for the database's library

LOGGER = logging.getLogger("recto.worker")
CHOOSES, READS = use_skill.__name__, read_skill_file.__name__
WHY_SELECT = "phase select: no skill is active"
WHY_EXECUTE = "phase execute: skill {skill}"
WHY_TRIGGERED = "; taken up because the user said: {triggers}"
# How a client's system message is announced to the model, among the context.
CLIENT_SAYS = "instructions of the client"
TOOLS_MISSING = "tools that cannot be used at present"
NOT_THERE = "{names}: not reached. If the user needs them, say that they are not available now."
FREE, REQUIRED = (None, "auto", "none"), "required"
NO_REQUEST, NOTHING = RunInput(thread="", run=""), KnownData()


@dataclass(frozen=True, kw_only=True)
class PromptContext:
    """What a call is made for: who speaks, how much is shown, what may be called, and what the client has to add."""

    prompt: Prompt
    tools: tuple[ToolOffer, ...]
    history: int | None
    budget: int | None
    items: tuple[ContextItem, ...] = ()
    skill: Skill | None = None
    known: KnownData = NOTHING


def prompt_context(
    agent: Agent,
    tools: Registry,
    asked: RunInput = NO_REQUEST,
    skill: Skill | None = None,
    known: KnownData = NOTHING,
    *,
    triggers: Sequence[str] = (),
) -> PromptContext:
    """Which prompt and which tools a call gets: of an agent, for a request, in a skill or without one.

    `triggers` are the words of the user's that took the skill up.
    """
    phase = _phase(agent, skill)
    prompt = _prompt(agent, skill, known, agent.tone_of(asked.options.voice_mode))
    if triggers:
        prompt = replace(prompt, why=prompt.why + WHY_TRIGGERED.format(triggers=", ".join(triggers)))
    said = [message.text for message in asked.messages if isinstance(message, (SystemMessage, DeveloperMessage))]
    if said and agent.client_system:
        prompt, said = replace(prompt, identity="\n\n".join([prompt.identity, *said])), []
    return PromptContext(
        prompt=prompt,
        tools=_offers(agent, skill, tools, asked.tools),
        history=phase.history,
        budget=phase.budget,
        # Where the agent does not take it into the prompt, it has no more weight than what a user says (P3).
        items=(*asked.context, *[ContextItem(description=CLIENT_SAYS, value=text) for text in said], *_missing(tools)),
        skill=skill,
        known=known,
    )


def _missing(tools: Registry) -> Iterator[ContextItem]:
    """The model is told of tools that it would have and has not."""
    if tools.missing:
        yield ContextItem(description=TOOLS_MISSING, value=NOT_THERE.format(names=", ".join(tools.missing)))


def _phase(agent: Agent, skill: Skill | None) -> Phase:
    phase = agent.execute if skill else agent.select
    return phase if agent.skills else replace(phase, history=agent.history, budget=agent.budget)


def most_history(agent: Agent) -> int | None:
    """How many messages of history any page of this agent's shows at most, in whatever skill; None: all."""
    shown = [phase.history for phase in (agent.select, agent.execute)] if agent.skills else [agent.history]
    return None if None in shown else max(history for history in shown if history is not None)


def _prompt(agent: Agent, skill: Skill | None, known: KnownData, tone: str) -> Prompt:
    prompt = replace(agent.prompt, tone=tone) if tone != agent.prompt.tone else agent.prompt
    if not agent.skills:
        return prompt
    if skill is None:
        return replace(prompt, why=WHY_SELECT)
    found = expert(skill, known, _expert_input(agent, tone))
    return replace(found.prompt, why=_why(skill, known, found))


def _offers(agent: Agent, skill: Skill | None, tools: Registry, brought: Sequence[ToolOffer]) -> tuple[ToolOffer, ...]:
    """The agent's tools for it, then the client's, which may stand for one of them.

    The one that chooses a skill has the agent's own words.
    """
    choosing = (agent.use_skill[_phase(agent, skill).name],) if agent.skills else ()
    names, theirs = offered(agent, skill, tools), {tool.name for tool in brought}
    ours = (*choosing, *tools.offers([name for name in tools if name in names and name != CHOOSES]))
    return (*[tool for tool in ours if tool.name not in theirs], *brought)


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


def sampled(agent: Agent, seen: View, offers: Sequence[ToolOffer]) -> Sampling:
    """How the model is asked now. Made to call a tool once in a turn, it may answer then; one there is not, never."""
    sampling = agent.sampling
    has_acted = any(message.role == "tool" for message in seen.messages[seen.turn_start :])
    is_there = sampling.tool_choice == REQUIRED or sampling.tool_choice in [offer.name for offer in offers]
    if sampling.tool_choice in FREE or (is_there and not has_acted):
        return sampling
    return replace(sampling, tool_choice="auto")
