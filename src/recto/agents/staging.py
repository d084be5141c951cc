"""What an agent with skills is made of beside its own file: phases, skills and a profile's schema, read and checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from recto.agents.agent import Agent
from recto.agents.schema_faults import schema_faults
from recto.agents.tables import AgentTable, PhaseTable
from recto.config.frontmatter import LONGEST
from recto.config.problem import Problem
from recto.config.yaml_values import read_yaml
from recto.page import Phase
from recto.page.canonical import Json, dump
from recto.page.phase import EXECUTE, SELECT
from recto.page.prompt import render
from recto.page.tokens import OFFLINE
from recto.skills.expert import Expertise, expert
from recto.skills.known import Known
from recto.skills.load import load_skills
from recto.skills.skill import Skill

SKILLS, PROFILE = "skills", "profile"
# Tools that come with skills, so that nobody else may be called so.
SKILL_TOOLS = ("use_skill", "read_skill_file")
TOO_LONG = f"it has more than {LONGEST} bytes. Shorten it."


@dataclass(frozen=True, kw_only=True)
class Staged:
    """What was found in an agent's folder: its skills, the schema of its users' profile; and what is wrong with it.

    With `problems` the agent cannot work. A broken skill is left out, and the agent works without.
    """

    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    profile_schema: str | None = None
    field_titles: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: tuple[Problem, ...] = ()
    broken_skills: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def read_stage(folder: Path, locale: str) -> Staged:
    """The skills and the profile's schema of an agent's folder, in a language."""
    loaded = load_skills(folder / SKILLS, locale)
    return replace(
        _read_profile(folder, locale),
        skills=loaded.skills,
        broken_skills=tuple([problem for problems in loaded.broken.values() for problem in problems]),
        warnings=loaded.warnings,
    )


def with_phases(agent: Agent, table: AgentTable) -> Agent:
    """The agent with the phases its table gives."""
    select = _phase(SELECT, table.phases.select)
    return replace(agent, select=select, execute=_phase(EXECUTE, table.phases.execute))


def _phase(phase: Phase, table: PhaseTable) -> Phase:
    """All of history is nothing that is counted, so whether it was given is asked of the table."""
    history = table.history if "history" in table.model_fields_set else phase.history
    return replace(phase, history=history, budget=table.budget or phase.budget)


def _read_profile(folder: Path, locale: str) -> Staged:
    names = (f"{PROFILE}.{locale}.yaml", f"{PROFILE}.yaml")
    file = next((folder / name for name in names if (folder / name).exists()), None)
    if file is None:
        return Staged()
    try:
        with file.open("rb") as stream:
            raw = stream.read(LONGEST + 1)
        text = raw.decode("utf-8").replace("\r\n", "\n") if len(raw) <= LONGEST else ""
    except (OSError, UnicodeDecodeError) as error:
        text = f"it cannot be read ({error}). Save it as UTF-8, or take it away."
        return Staged(problems=(Problem(file=file, line=None, text=text),))
    if len(raw) > LONGEST:
        return Staged(problems=(Problem(file=file, line=None, text=TOO_LONG),))
    found = read_yaml(text, first_line=1)
    faults = found.faults or tuple(schema_faults(found.values, found, ()))
    if faults:
        return Staged(problems=tuple([Problem(file=file, line=one.line, text=one.text) for one in faults]))
    return Staged(profile_schema=dump(found.values).decode(), field_titles=_titles(found.values))


def _titles(schema: Mapping[str, Json]) -> Mapping[str, str]:
    fields = schema.get("properties")
    known = cast("Mapping[str, Json]", fields if isinstance(fields, Mapping) else {})
    return {name: title for name, one in known.items() if isinstance(one, Mapping) and (title := _title(one))}


def _title(schema: Mapping[str, Json]) -> str:
    title = schema.get("title")
    return title if isinstance(title, str) else ""


def stage_doubts(agent: Agent, tools: Collection[str]) -> Iterator[tuple[str | None, str]]:
    """What is allowed and yet hardly meant: of which skill, or None, and a text."""
    if not agent.skills:
        return
    for phase, offer in agent.use_skill.items():
        if offer.note and phase == SELECT.name:
            yield None, f"{offer.note}. Shorten descriptions, or raise directory_tokens."
    lean = OFFLINE.count((render(agent.prompt, agent.locale),))[0]
    if agent.select.budget is not None and lean > agent.select.budget:
        yield (
            None,
            f"phases.select.budget is {agent.select.budget}, but the persona has {lean} tokens and is never cut.",
        )
    yield from _choice_doubts(agent)
    for skill in agent.skills.values():
        yield from _skill_doubts(agent, skill, tools)


def _choice_doubts(agent: Agent) -> Iterator[tuple[None, str]]:
    """A tool of some skills is not offered in every page. Tools told of in words are never chosen so."""
    choice = agent.sampling.tool_choice
    having = [skill.name for skill in agent.skills.values() if choice in skill.tools]
    if having and agent.tool_calling == "native":
        told = f"tool_choice is {choice}, which only {', '.join(having)} may call, so no other page asks for it"
        yield None, f"{told}. Choose a tool that no skill names, or leave it out."


def _skill_doubts(agent: Agent, skill: Skill, tools: Collection[str]) -> Iterator[tuple[str, str]]:
    unknown = [name for name in skill.tools if name not in tools]
    if unknown:
        told = f"this agent has no tool {', '.join(unknown)}, so the skill works without"
        yield skill.name, f"{told}. Put it into tools.py, or leave it out."
    fields = [path for path in skill.fields if agent.field_titles and path.split(".")[0] not in agent.field_titles]
    if fields:
        yield skill.name, f"{PROFILE}.yaml has no field {', '.join(fields)}. Describe it there, or leave it out."
    most = agent.execute.budget
    prompt = expert(skill, Known(), Expertise(locale=agent.locale, tool_rules=agent.prompt.rules)).prompt
    tokens = OFFLINE.count((render(prompt, agent.locale),))[0]
    if most is not None and tokens > most:
        text = f"its prompt has {tokens} tokens before anything is known of a user, over the {most} of phases.execute"
        yield skill.name, f"{text}; who it is and what it does is never cut. Move some of it into files beside it."
