"""Warnings about an agent and its skills: what is allowed and yet hardly meant. Nothing here refuses an agent."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from recto.agents.agent import Agent
from recto.agents.external_tools import is_elsewhere
from recto.config.frontmatter import MarkdownFile
from recto.config.problem import Fault
from recto.config.yaml_values import YamlPath
from recto.page.facts import SELECT
from recto.page.prompt.system_prompt import render
from recto.page.text.tokens import OFFLINE
from recto.skills.expert import ExpertInput, expert
from recto.skills.known import KnownData
from recto.skills.skill import Skill

NO_PERSONA = "it has no persona, so the built-in one stands. Say who the agent is."
OF_SKILLS = ("phases", "directory_tokens", "cases")


def persona_tokens(agent: Agent) -> int:
    """The tokens of an agent's system prompt as it stands in every page."""
    return OFFLINE.count((render(agent.prompt, agent.locale),))[0]


def agent_warnings(agent: Agent, document: MarkdownFile) -> Iterator[Fault]:
    """Those about the settings of its file. What rests on lines of another file alone was told of that one."""
    lines = document.settings.lines
    if not document.body:
        yield Fault(line=document.end_line, text=NO_PERSONA)
    for warning in (*_own_warnings(agent), *_skill_warnings(agent), *_file_warnings(agent)):
        line = next((lines[place] for place in warning.places if place in lines), None)
        if line is not None:
            yield Fault(line=line, text=warning.text)


def skill_warnings(agent: Agent, tools: Collection[str]) -> Iterator[tuple[str | None, str]]:
    """Those about its skills: of which one, or None, and a text. Tokens are counted for them."""
    if not agent.skills:
        return
    for phase, offer in agent.use_skill.items():
        if offer.note and phase == SELECT.name:
            yield None, f"{offer.note}. Shorten descriptions, or raise directory_tokens."
    lean = persona_tokens(agent)
    if agent.select.budget is not None and lean > agent.select.budget:
        yield (
            None,
            f"phases.select.budget is {agent.select.budget}, but the persona has {lean} tokens and is never cut.",
        )
    # A tool of some skills is not offered in every page. Tools told of in words are never chosen so.
    choice = agent.sampling.tool_choice
    having = [skill.name for skill in agent.skills.values() if choice in skill.tools]
    if having and agent.tool_calling != "prompt":
        text = f"tool_choice is {choice}, which only {', '.join(having)} may call, so no other page asks for it"
        yield None, f"{text}. Choose a tool that no skill names, or leave it out."
    for skill in agent.skills.values():
        yield from _warnings_of_skill(agent, skill, tools)


class _Warning(NamedTuple):
    """A text, and the places it rests on, the likeliest to be changed first."""

    text: str
    places: tuple[YamlPath, ...]


def _own_warnings(agent: Agent) -> Iterator[_Warning]:
    if agent.history == 0 and not agent.skills:
        text = "history is 0, so the model sees nothing of what was said before. Leave it out to show all."
        yield _Warning(text, (("history",),))
    if agent.tool_calling == "prompt" and agent.sampling.tool_choice not in (None, "auto"):
        text = "tool_choice does nothing with tool_calling: prompt, which tells of tools in words. Leave it out."
        yield _Warning(text, (("tool_choice",), ("tool_calling",)))
    if agent.budget is not None and not agent.skills and (tokens := persona_tokens(agent)) > agent.budget:
        text = f"budget is {agent.budget}, but the persona has {tokens} tokens and is never cut. Raise the budget."
        yield _Warning(text, (("budget",),))


def _skill_warnings(agent: Agent) -> Iterator[_Warning]:
    """Phases have their own history and budget; without skills there are no phases."""
    for name in ("history", "budget") if agent.skills else ():
        text = f"{name} does nothing where there are skills. Say it in phases.select and phases.execute."
        yield _Warning(text, ((name,),))
    for name in OF_SKILLS if not agent.skills else ():
        yield _Warning(f"{name} does nothing without skills. Leave it out.", ((name,),))


def _file_warnings(agent: Agent) -> Iterator[_Warning]:
    files = agent.file_input
    mode, urls = ("file_input", "mode"), ("file_input", "urls")
    settings = [place for place, is_given in ((mode, files.mode == "always"), (urls, files.urls)) if is_given]
    for place in settings if not files.is_on else ():
        text = f"{'.'.join(place)} does nothing with file_input.on: false. Switch that on, or leave it out."
        yield _Warning(text, (place,))
    if mode not in settings or not files.is_on:
        return
    if not files.takes_documents:
        text = "file_input.mode is always, but the agent takes no documents, so no page carries any. Leave it out."
        yield _Warning(text, (mode,))
    elif agent.quote.strip():
        text = "quote stands where file_input.mode: always puts the documents, so no page carries them. Leave one out."
        yield _Warning(text, (("quote",), mode))


def _warnings_of_skill(agent: Agent, skill: Skill, tools: Collection[str]) -> Iterator[tuple[str, str]]:
    servers = [one.name for one in (*agent.mcp, *agent.openapi)]
    unknown = [name for name in skill.tools if name not in tools and not is_elsewhere(name, servers)]
    if unknown:
        text = f"this agent has no tool {', '.join(unknown)}, so the skill works without"
        yield skill.name, f"{text}. Put it into tools.py, or leave it out."
    fields = [path for path in skill.fields if agent.field_titles and path.split(".")[0] not in agent.field_titles]
    if fields:
        yield skill.name, f"profile.yaml has no field {', '.join(fields)}. Describe it there, or leave it out."
    most = agent.execute.budget
    prompt = expert(skill, KnownData(), ExpertInput(locale=agent.locale, tool_rules=agent.prompt.rules)).prompt
    tokens = OFFLINE.count((render(prompt, agent.locale),))[0]
    if most is not None and tokens > most:
        text = f"its prompt has {tokens} tokens before anything is known of a user, over the {most} of phases.execute"
        yield skill.name, f"{text}; who it is and what it does is never cut. Move some of it into files beside it."
