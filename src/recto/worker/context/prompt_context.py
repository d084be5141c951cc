"""The prompt and tools of a call (S1): those of the agent, the active skill and the client.

A skill gets only the user data that it declares.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from recto.agents.agent import Agent, Sampling
from recto.conversation.document import Extent
from recto.conversation.input.run_input import ContextItem, RunInput
from recto.conversation.log import SkillChanged, View
from recto.conversation.messages import DeveloperMessage, SystemMessage, ToolOffer
from recto.page.facts import Phase
from recto.page.prompt.quote import ParsedDocument, Quote, QuoteSource, choose_documents, quote_message
from recto.page.prompt.system_prompt import Prompt
from recto.page.text.cut import FULL_ENOUGH, common_length
from recto.page.text.tokens import TokenCounter
from recto.skills.expert import ExpertInput, expert
from recto.skills.known_data import KnownData
from recto.skills.skill import Skill
from recto.tools.builtin.skill_tools import read_skill_file, use_skill
from recto.tools.documents.read_many import NO_TEXT, Unread, failure, read_each
from recto.tools.ports import Document, ReportProgress, ToolFiles
from recto.tools.registry import Registry

if TYPE_CHECKING:
    from recto.store.store import Store  # not at run time: without SQLAlchemy `recto explain` starts faster


LOGGER = logging.getLogger("recto.worker")
CHOOSES, READS = use_skill.__name__, read_skill_file.__name__
WHY_SELECT = "phase select: no skill is active"
WHY_EXECUTE = "phase execute: skill {skill}"
WHY_TRIGGERED = "; taken up because the user said: {triggers}"
# Label of a client's system message in the context.
CLIENT_SAYS = "instructions of the client"
TOOLS_MISSING = "tools that cannot be used at present"
NOT_THERE = "{names}: not reached. If the user needs them, say that they are not available now."
FREE, REQUIRED = (None, "auto", "none"), "required"
NO_REQUEST, NO_DATA = RunInput(thread="", run=""), KnownData()


@dataclass(frozen=True, kw_only=True)
class PromptContext:
    """The prompt of a call, its tools, the limits of its history, and context items of the client."""

    prompt: Prompt
    tools: tuple[ToolOffer, ...]
    history: int | None
    budget: int | None
    items: tuple[ContextItem, ...] = ()
    skill: Skill | None = None
    data: KnownData = NO_DATA


def build_prompt_context(
    agent: Agent,
    tools: Registry,
    request: RunInput = NO_REQUEST,
    skill: Skill | None = None,
    data: KnownData = NO_DATA,
    *,
    triggers: Sequence[str] = (),
) -> PromptContext:
    """Return the prompt and the tools of an agent for a request. `triggers` are the words that activated the skill."""
    phase = _phase(agent, skill)
    prompt = _prompt(agent, skill, data, agent.tone_of(request.options.voice_mode))
    if triggers:
        prompt = replace(prompt, why=prompt.why + WHY_TRIGGERED.format(triggers=", ".join(triggers)))
    texts = [message.text for message in request.messages if isinstance(message, (SystemMessage, DeveloperMessage))]
    if texts and agent.client_system:
        prompt, texts = replace(prompt, identity="\n\n".join([prompt.identity, *texts])), []
    client_texts = [ContextItem(description=CLIENT_SAYS, value=text) for text in texts]
    # Tell the model about unavailable tools.
    missing = NOT_THERE.format(names=", ".join(tools.missing))
    unavailable = (ContextItem(description=TOOLS_MISSING, value=missing),) if tools.missing else ()
    # The agent contains the offer of the tool that activates skills.
    choosing = (agent.use_skill[_phase(agent, skill).name],) if agent.skills else ()
    names, client_names = select_tools(agent, skill, tools), {tool.name for tool in request.tools}
    own = (*choosing, *tools.offers([name for name in tools if name in names and name != CHOOSES]))
    return PromptContext(
        prompt=prompt,
        tools=(*[tool for tool in own if tool.name not in client_names], *request.tools),
        history=phase.history,
        budget=phase.budget,
        # In these items, a client's system message has only the authority of a user message (P3).
        items=(*request.context, *client_texts, *unavailable),
        skill=skill,
        data=data,
    )


def _phase(agent: Agent, skill: Skill | None) -> Phase:
    phase = agent.execute if skill else agent.select
    return phase if agent.skills else replace(phase, history=agent.history, budget=agent.budget)


def most_history(agent: Agent) -> int | None:
    """Return the maximum number of messages in a page of an agent, with any skill. None sets no limit."""
    limits = [phase.history for phase in (agent.select, agent.execute)] if agent.skills else [agent.history]
    return None if None in limits else max(history for history in limits if history is not None)


def _prompt(agent: Agent, skill: Skill | None, data: KnownData, tone: str) -> Prompt:
    prompt = replace(agent.prompt, tone=tone) if tone != agent.prompt.tone else agent.prompt
    if not agent.skills:
        return prompt
    if skill is None:
        return replace(prompt, why=WHY_SELECT)
    expert_input = ExpertInput(
        locale=agent.locale, tone=tone, titles=agent.field_titles, max_cases=agent.cases, tool_rules=agent.prompt.rules
    )
    result = expert(skill, data, expert_input)
    why = WHY_EXECUTE.format(skill=skill.name)
    why += f", scenario {data.scenario}" if data.scenario else ""
    why += f"; next step {result.step.id}" if result.step else ""
    cases = ", ".join(f"{one.case.id} (score {one.score})" for one in result.cases)
    return replace(result.prompt, why=why + (f"; best cases {cases}" if cases else ""))


def select_tools(agent: Agent, skill: Skill | None, tools: Registry) -> frozenset[str]:
    """Return the tools that belong to no skill, and the tools of the active skill.

    The tool that reads files of a skill is included only if the active skill has files.
    """
    if not agent.skills:
        return frozenset(tools)
    skill_tools = {name for one in agent.skills.values() for name in one.tools} - {CHOOSES}
    own = [name for name in skill.tools if name != READS] if skill else []
    general = [name for name in tools if name not in skill_tools and name != READS]
    return frozenset((*general, *own, *((READS,) if skill and skill.files else ())))


async def load_skill_data(store: Store, owner: str, skill: Skill, request_data: KnownData) -> KnownData:
    """Return the data of a request, with only the user data that the skill declares (S6)."""
    names = tuple(dict.fromkeys(path.split(".")[0] for path in skill.fields))
    fields = await store.users.read_fields(owner, names)
    own = await store.users.read_skill_data(owner, skill.name) if skill.has_data else None
    scenario = skill.scenario(request_data.scenario)
    return replace(
        request_data,
        profile=fields,
        skill_data={skill.name: own} if own is not None else {},
        scenario=scenario.name if scenario else None,
    )


def find_skill(skills: Mapping[str, Skill], change: SkillChanged | None) -> Skill | None:
    """Return the skill that a log entry activates, or None if the agent no longer has it."""
    if change is None or change.skill is None:
        return None
    skill = skills.get(change.skill)
    if skill is None and skills:
        LOGGER.warning("the agent no longer has skill %s of the thread: its pages show none", change.skill)
    return skill


def choose_sampling(agent: Agent, log_view: View, offers: Sequence[ToolOffer]) -> Sampling:
    """Return the sampling of a call. A tool is required only once per turn, and only if the page offers it."""
    sampling = agent.sampling
    has_acted = any(message.role == "tool" for message in log_view.messages[log_view.turn_start :])
    is_offered = sampling.tool_choice == REQUIRED or sampling.tool_choice in [offer.name for offer in offers]
    if sampling.tool_choice in FREE or (is_offered and not has_acted):
        return sampling
    return replace(sampling, tool_choice="auto")


# Characters to read for each token of the budget: first enough for words, then enough for lines of dots. A text that
# needs more is mostly blank and not worth the memory.
CHARACTERS_PER_TOKEN = (8, 32)


async def build_quote(
    agent: Agent, files: ToolFiles | None, counter: TokenCounter, report: ReportProgress, gate: asyncio.Semaphore
) -> Quote | None:
    """Return the quote that the pages of a run show before the history, or None.

    Wait until all documents are parsed, because their lengths must not change within a turn. Count tokens in a thread,
    and only of characters that may be shown. The gate limits the number of quotes that are built at the same time,
    because each build holds several copies of its text.
    """
    budget = agent.file_input.quote_tokens

    async def cut(source: QuoteSource) -> Quote | None:
        cut_to_budget = partial(quote_message, source, budget=budget, counter=counter, locale=agent.locale)
        return await asyncio.to_thread(cut_to_budget)

    if agent.quote.strip():
        return await cut(agent.quote)
    if files is None or agent.file_input.mode != "always":
        return None
    documents = choose_documents(files.turns, agent.file_input.max_files)
    lengths = [
        extent.characters if isinstance(extent, Extent) else len(failure(extent.reason))
        for extent in await read_each(documents, lambda document: document.whole(), files, report)
    ]
    async with gate:
        quote: Quote | None = None
        for share in CHARACTERS_PER_TOKEN:
            size = common_length(lengths, budget * share)
            parsed_documents = list[ParsedDocument]()
            contents = await read_each(documents, partial(_beginning, size), files, report)
            for name, content in zip([one.name for one in documents], contents, strict=True):
                if isinstance(content, Unread):
                    # The reason replaces the text of an unreadable document (D5).
                    parsed_documents.append(ParsedDocument(name=name, content=failure(content.reason), failed=True))
                    continue
                text, total = content
                is_empty = total <= len(text) and not text.strip()
                parsed_documents.append(ParsedDocument(name=name, content=NO_TEXT if is_empty else text, total=total))
            quote = await cut(tuple(parsed_documents))
            if quote is None or quote.tokens_after >= FULL_ENOUGH * budget or size >= max(lengths):
                break
        return quote


async def _beginning(size: int, document: Document) -> tuple[str, int]:
    """Return the first `size` characters of a document, and the number of all its characters."""
    return (await document.characters(0, size)).text, document.extent.characters
