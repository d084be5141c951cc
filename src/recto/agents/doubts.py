"""What of an agent's settings is allowed and yet hardly meant. Refuses to refuse: these are warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recto.agents.agent import Agent
from recto.config.frontmatter import Document
from recto.config.problem import Fault
from recto.config.yaml_values import Place
from recto.page.prompt import render
from recto.page.tokens import OFFLINE

NO_PERSONA = "it has no persona, so the built-in one stands. Say who the agent is."
OF_SKILLS = ("phases", "directory_tokens", "cases")


def persona_tokens(agent: Agent) -> int:
    """The tokens of an agent's system prompt as it stands in every page."""
    return OFFLINE.count((render(agent.prompt, agent.locale),))[0]


def doubts(agent: Agent, document: Document) -> Iterator[Fault]:
    """What is allowed and yet hardly meant."""
    lines = document.settings.lines
    if not document.body:
        yield Fault(line=document.end_line, text=NO_PERSONA)
    if agent.history == 0 and not agent.skills:
        text = "history is 0, so the model sees nothing of what was said before. Leave it out to show all."
        yield Fault(line=lines["history",], text=text)
    if agent.tool_calling == "prompt" and agent.sampling.tool_choice not in (None, "auto"):
        text = "tool_choice does nothing with tool_calling: prompt, which tells of tools in words. Leave it out."
        yield Fault(line=lines["tool_choice",], text=text)
    if agent.budget is not None and not agent.skills and (tokens := persona_tokens(agent)) > agent.budget:
        text = f"budget is {agent.budget}, but the persona has {tokens} tokens and is never cut. Raise the budget."
        yield Fault(line=lines["budget",], text=text)
    yield from _skill_doubts(agent, lines)
    yield from _file_doubts(agent, lines)


def _skill_doubts(agent: Agent, lines: Mapping[Place, int]) -> Iterator[Fault]:
    """Phases have their own history and budget; without skills there are no phases."""
    for name in ("history", "budget") if agent.skills else ():
        if (name,) in lines:
            text = f"{name} does nothing where there are skills. Say it in phases.select and phases.execute."
            yield Fault(line=lines[name,], text=text)
    for name in OF_SKILLS if not agent.skills else ():
        if (name,) in lines:
            yield Fault(line=lines[name,], text=f"{name} does nothing without skills. Leave it out.")


def _file_doubts(agent: Agent, lines: Mapping[Place, int]) -> Iterator[Fault]:
    files = agent.file_input
    mode, urls = ("file_input", "mode"), ("file_input", "urls")
    given = [place for place, is_given in ((mode, files.mode == "always"), (urls, files.urls)) if is_given]
    for place in given if not files.is_on else ():
        text = f"{'.'.join(place)} does nothing with file_input.on: false. Switch that on, or leave it out."
        yield Fault(line=lines[place], text=text)
    if mode not in given or not files.is_on:
        return
    if not files.takes_documents:
        text = "file_input.mode is always, but the agent takes no documents, so no page carries any. Leave it out."
        yield Fault(line=lines[mode], text=text)
    elif agent.quote.strip():
        text = "quote stands where file_input.mode: always puts the documents, so no page carries them. Leave one out."
        yield Fault(line=lines["quote",], text=text)
