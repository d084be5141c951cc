"""Warnings about likely mistakes in an agent and its skills."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from recto.agents.agent import Agent
from recto.agents.external_tools import is_external
from recto.config.frontmatter import MarkdownFile
from recto.config.problem import Fault
from recto.config.yaml_values import YamlPath
from recto.page.facts import SELECT
from recto.page.prompt.system_prompt import render
from recto.page.text.tokens import OFFLINE
from recto.skills.expert import ExpertInput, expert
from recto.skills.known_data import KnownData

NO_PERSONA = "it has no persona, so the built-in one applies. Describe the agent below its settings."
OF_SKILLS = ("phases", "directory_tokens", "cases")


def persona_tokens(agent: Agent) -> int:
    """Return the tokens of an agent's system prompt, which is part of every page."""
    return OFFLINE.count((render(agent.prompt, agent.locale),))[0]


def agent_warnings(agent: Agent, document: MarkdownFile) -> Iterator[Fault]:
    """Yield warnings about the settings of a file.

    Skip warnings about lines of another file, which belong to that file.
    """
    lines = document.settings.lines
    if not document.body:
        yield Fault(line=document.end_line, text=NO_PERSONA)
    for text, places in (*_setting_warnings(agent), *_file_warnings(agent)):
        line = next((lines[place] for place in places if place in lines), None)
        if line is not None:
            yield Fault(line=line, text=text)


def skill_warnings(agent: Agent, tools: Collection[str]) -> Iterator[tuple[str | None, str]]:
    """Yield warnings, each with the name of a skill or None. Counting tokens is slow."""
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
    # Pages of other skills do not offer the required tool. With tools in the prompt, tool_choice has no effect.
    choice = agent.sampling.tool_choice
    having = [skill.name for skill in agent.skills.values() if choice in skill.tools]
    if having and agent.tool_calling != "prompt":
        text = f"tool_choice is {choice}, which only {', '.join(having)} may call, so pages of other skills ignore it"
        yield None, f"{text}. Choose a tool that no skill names, or remove it."
    servers, most = [one.name for one in (*agent.mcp, *agent.openapi)], agent.execute.budget
    for skill in agent.skills.values():
        unknown = [name for name in skill.tools if name not in tools and not is_external(name, servers)]
        if unknown:
            text = f"this agent has no tool {', '.join(unknown)}, so the skill works without it"
            yield skill.name, f"{text}. Add it to tools.py, or remove it."
        fields = [path for path in skill.fields if agent.field_titles and path.split(".")[0] not in agent.field_titles]
        if fields:
            yield skill.name, f"profile.yaml has no field {', '.join(fields)}. Add it there, or remove it."
        prompt = expert(skill, KnownData(), ExpertInput(locale=agent.locale, tool_rules=agent.prompt.rules)).prompt
        tokens = OFFLINE.count((render(prompt, agent.locale),))[0]
        if most is not None and tokens > most:
            text = f"its prompt has {tokens} tokens without user data, over the {most} of phases.execute; persona and"
            yield skill.name, f"{text} procedure are never cut. Move some text to other files of the skill."


# The text of a warning, and the settings that may cause it, the most likely one first.
_Warning: TypeAlias = tuple[str, tuple[YamlPath, ...]]


def _setting_warnings(agent: Agent) -> Iterator[_Warning]:
    if agent.history == 0 and not agent.skills:
        text = "history is 0, so the model sees no earlier messages. Remove it to show all."
        yield text, (("history",),)
    if agent.tool_calling == "prompt" and agent.sampling.tool_choice not in (None, "auto"):
        text = "tool_choice has no effect with tool_calling: prompt, which describes tools as text. Remove it."
        yield text, (("tool_choice",), ("tool_calling",))
    if agent.budget is not None and not agent.skills and (tokens := persona_tokens(agent)) > agent.budget:
        text = f"budget is {agent.budget}, but the persona has {tokens} tokens and is never cut. Raise the budget."
        yield text, (("budget",),)
    # Without skills, the phases have no effect. With skills, the phases have their own history and budget.
    for name in ("history", "budget") if agent.skills else ():
        text = f"{name} has no effect with skills. Set it in phases.select and phases.execute."
        yield text, ((name,),)
    for name in OF_SKILLS if not agent.skills else ():
        yield f"{name} has no effect without skills. Remove it.", ((name,),)


def _file_warnings(agent: Agent) -> Iterator[_Warning]:
    files = agent.file_input
    mode, urls = ("file_input", "mode"), ("file_input", "urls")
    settings = [place for place, is_given in ((mode, files.mode == "always"), (urls, files.urls)) if is_given]
    for place in settings if not files.is_on else ():
        text = f"{'.'.join(place)} has no effect with file_input.on: false. Enable that, or remove it."
        yield text, (place,)
    if mode not in settings or not files.is_on:
        return
    if not files.takes_documents:
        text = "file_input.mode is always, but the agent accepts no documents, so pages contain none. Remove it."
        yield text, (mode,)
    elif agent.quote.strip():
        text = "quote replaces the documents of file_input.mode: always in pages. Remove one of them."
        yield text, (("quote",), mode)
