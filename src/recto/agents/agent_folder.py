"""Loading of an agent's folder: `AGENT.md` and its variants, skills and tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from recto.agents.agent import CHAT, Agent, Sampling
from recto.agents.agent_settings import (
    AgentTable,
    PhaseTable,
    check_settings,
    check_tools,
    file_input,
    summary_settings,
)
from recto.agents.agent_warnings import NO_PERSONA, agent_warnings, skill_warnings
from recto.agents.external_tools import is_external, mcp_settings, openapi_settings
from recto.agents.file_input import OLD_READING, READING, with_reading
from recto.agents.fold_table import with_table
from recto.agents.profile_schema import schema_faults
from recto.config.frontmatter import LONGEST, MarkdownFile, read_document, read_settings
from recto.config.problem import FileProblem
from recto.config.settings import Limits
from recto.config.table_check import nearest, value_fault
from recto.conversation.json import Json, dump
from recto.errors import SettingsError
from recto.page.facts import EXECUTE, SELECT, Phase
from recto.page.fold.fold_settings import RECALL, FoldSettings, placeholder_in, with_recall_hint
from recto.page.prompt.system_prompt import Prompt
from recto.page.steps.compact import CompactSettings
from recto.skills.load_skills import load_skills

FILE, TOOLS_FILE = "AGENT.md", "tools.py"
SKILLS, PROFILE = "skills", "profile"
# Languages of variants: `AGENT.en.md`.
VARIANTS = ("en", "zh")
NAME = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,63}")
NAME_RULE = "an agent's name has 1 to 64 letters, digits, - or _, all ASCII, and does not begin with _"
CHOICES = ("auto", "none", "required")
# Tools that are added with skills. Their names are reserved.
SKILL_TOOLS = ("use_skill", "read_skill_file")
NO_FIRST = (
    f"there is no {FILE} beside it, and it contains only differences from that. Write {FILE}, or rename it to that."
)


@dataclass(frozen=True, kw_only=True)
class Toolbox:
    """Names of the built-in tools, and two functions that inspect an agent's folder.

    `of_folder` returns the tools of a folder, and raises SettingsError if they cannot be loaded. `warnings_of` returns
    warnings about them.
    """

    built_in: Collection[str]
    of_folder: Callable[[Path], Collection[str]]
    warnings_of: Callable[[Path], Iterable[FileProblem]] = lambda _folder: ()


@dataclass(frozen=True, kw_only=True)
class ReadAgent:
    """Content of an agent's folder. If there are `problems`, the agent is unusable. Broken skills are only omitted."""

    agent: Agent
    problems: tuple[FileProblem, ...] = ()
    broken_skills: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()


def load_variants(folder: Path, limits: Limits, tools: Toolbox | None = None) -> Mapping[str, ReadAgent]:
    """Load an agent and its variants by name: `vibe`, and `vibe-en` for `AGENT.en.md`.

    A variant contains only its differences from `AGENT.md`. A broken agent has no variants.
    """
    first = load_agent(folder, limits, tools)
    read = {folder.name: first}
    for locale in VARIANTS if not first.problems else ():
        file = folder / _variant_of(FILE, locale)
        if file.exists():
            read[f"{folder.name}-{locale}"] = load_agent(folder, limits, tools, locale)
    return read


def load_agent(folder: Path, limits: Limits, tools: Toolbox | None = None, locale: str | None = None) -> ReadAgent:
    """Load an agent, or its variant in a language, with all problems."""
    file = folder / (_variant_of(FILE, locale) if locale else FILE)
    try:
        has_file, document = file.exists(), _read_document(file, locale)
    except OSError as error:
        return ReadAgent(agent=CHAT, problems=(_unreadable(file, error),))
    if missing := _missing(folder, locale):
        return ReadAgent(agent=CHAT, problems=(missing,))
    name = f"{folder.name}-{locale}" if locale else folder.name
    table, problems = _check_document(file, name, locale, document)
    skills = load_skills(folder / SKILLS, table.locale)
    broken_skills = tuple([problem for skill_problems in skills.broken.values() for problem in skill_problems])
    profile_schema, profile_problems = _read_profile(folder, table.locale)
    problems += (*profile_problems, *(_tool_problems(file, document, table, tools) if tools else ()))
    if problems:
        return ReadAgent(agent=CHAT, problems=tuple(problems), broken_skills=broken_skills)
    fields = profile_schema.get("properties") if profile_schema else None
    field_titles = {
        name: title
        for name, one in (fields.items() if isinstance(fields, Mapping) else ())
        if isinstance(one, Mapping) and (title := one.get("title")) and isinstance(title, str)
    }
    agent = replace(
        _agent(name, document.body, table, limits),
        variant_of=folder.name if locale else None,
        skills=skills.skills,
        profile_schema=None if profile_schema is None else dump(profile_schema).decode(),
        field_titles=field_titles,
        mcp=mcp_settings(table.mcp, document.settings, file),
        openapi=openapi_settings(table.openapi, document.settings, file),
        workspace=(folder / table.workspace).resolve() if table.workspace else None,
    )
    warnings = [fault.in_file(file) for fault in agent_warnings(agent, document)]
    if not has_file:
        warnings = [FileProblem(file=folder, text=f"there is no {FILE} in it: {NO_PERSONA}")]
    tools_file = folder / TOOLS_FILE
    for warning in tools.warnings_of(folder) if tools else ():
        # Report the path of the file as the user wrote it.
        warnings.append(replace(warning, file=tools_file) if warning.file == tools_file.resolve() else warning)
    return ReadAgent(agent=agent, broken_skills=broken_skills, warnings=(*warnings, *skills.warnings))


def lint(agent: Agent, folder: Path, tools: Toolbox) -> Iterator[FileProblem]:
    """Yield warnings about an agent's skills. Servers do not call this at start, because counting tokens is slow."""
    reading = with_reading(agent.tools, agent.file_input.takes_documents)
    tool_names = (*tools.built_in, *reading, *tools.of_folder(folder), *SKILL_TOOLS)
    for skill, text in skill_warnings(agent, tool_names):
        yield FileProblem(file=agent.skills[skill].folder / "SKILL.md" if skill else folder / FILE, text=text)


def _variant_of(name: str, locale: str) -> str:
    """Return the name of a file's variant."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{locale}.{ending}"


def _read_document(file: Path, locale: str | None) -> MarkdownFile:
    """Read a file. Merge a variant over the agent's own file; faults of that file are reported with that file."""
    document = read_document(_beginning(file)) if file.exists() else MarkdownFile()
    if not locale or not file.with_name(FILE).exists():
        return document
    first = read_document(_beginning(file.with_name(FILE)))
    own, base = document.settings, first.settings
    values = {**base.values, "locale": locale, **own.values}
    all_values = replace(own, values=values, names={**base.names, **own.names}, warnings=())
    return replace(document, settings=all_values, body=document.body or first.body)


def _unreadable(file: Path, error: OSError) -> FileProblem:
    return FileProblem(file=file, text=f"it cannot be read ({error.strerror}). Fix or remove it.")


def _beginning(file: Path) -> bytes:
    """Read a file up to one byte over the limit, so that callers can detect larger files."""
    with file.open("rb") as stream:
        return stream.read(LONGEST + 1)


def _missing(folder: Path, locale: str | None) -> FileProblem | None:
    """Return the problem of a folder without the required files, if any."""
    if (folder / FILE).exists():
        return None
    variants = [folder / _variant_of(FILE, one) for one in ((locale,) if locale else VARIANTS)]
    files = [file for file in variants if file.exists()]
    has_more = (folder / TOOLS_FILE).exists() or (folder / SKILLS).is_dir()
    if files and (locale or not has_more):
        return FileProblem(file=files[0], text=NO_FIRST)
    text = f"there is neither {FILE} nor {TOOLS_FILE} in it. Write one, or begin its name with _ to leave it out."
    return None if has_more else FileProblem(file=folder, text=text)


def _check_document(
    file: Path, name: str, locale: str | None, document: MarkdownFile
) -> tuple[AgentTable, list[FileProblem]]:
    """Return the settings of a file, and the problems of settings, names and workspace."""
    folder = file.parent
    table, faults = check_settings(document.settings, folder.name)
    language = document.settings.values.get("locale")
    # Skip unknown languages here, because the schema reports them.
    if locale and language in VARIANTS and language != locale:
        allowed = f"the file name selects {locale}. Remove the line or rename the file"
        faults = (*faults, value_fault(document.settings, ("locale",), language, allowed))
    problems = [fault.in_file(file) for fault in sorted(faults, key=lambda fault: fault.line)]
    if not NAME.fullmatch(folder.name):
        problems.append(FileProblem(file=folder, text=f"{NAME_RULE}. Rename the folder."))
    elif not NAME.fullmatch(name):
        text = f"in another language it would be {name}, but {NAME_RULE}. Shorten the folder's name."
        problems.append(FileProblem(file=folder, text=text))
    if table.workspace and not (folder / table.workspace).is_dir():
        allowed = "there is no such folder. Make it first"
        problems.append(value_fault(document.settings, ("workspace",), table.workspace, allowed).in_file(file))
    return table, problems


def _read_profile(folder: Path, locale: str) -> tuple[Mapping[str, Json] | None, Iterable[FileProblem]]:
    """Read the schema of user profiles in a language, or return problems."""
    names = (f"{PROFILE}.{locale}.yaml", f"{PROFILE}.yaml")
    file = next((folder / name for name in names if (folder / name).exists()), None)
    if file is None:
        return None, ()
    try:
        values = read_settings(_beginning(file))
    except OSError as error:
        return None, (_unreadable(file, error),)
    faults = values.faults or tuple(schema_faults(values.values, values, ()))
    return (None, [fault.in_file(file) for fault in faults]) if faults else (values.values, ())


def _tool_problems(file: Path, document: MarkdownFile, table: AgentTable, tools: Toolbox) -> Iterator[FileProblem]:
    """Yield problems of tools that do not exist, cannot be loaded, or have a duplicate name."""
    folder, settings = file.parent, document.settings
    for fault in check_tools(settings, table, tools.built_in):
        yield fault.in_file(file)
    try:
        own = tools.of_folder(folder)
    except SettingsError as error:
        yield _of_tools_file(folder / TOOLS_FILE, error)
        return
    built_in = with_reading(table.tools, file_input(table.file_input).takes_documents)
    names = (*built_in, OLD_READING) if READING in built_in else built_in
    names = (*names, *(SKILL_TOOLS if (folder / SKILLS).is_dir() else ()))
    for name in [name for name in names if name in own]:
        text = f"the tool {name} is built in and in {TOOLS_FILE} too. Rename yours"
        if name in SKILL_TOOLS:
            text += "; agents with skills have it."
        elif name in table.tools:
            text += f", or leave {name} out of `tools`."
        else:
            text += "; agents that accept documents have it."
        line = settings.lines.get(("tools",))
        yield FileProblem(file=file if line else folder / TOOLS_FILE, line=line, text=text)
    has, servers = (*names, *own), (*table.mcp, *table.openapi)
    for number, name in enumerate(table.confirm):
        if name in has or is_external(name, servers):
            continue
        allowed = f"this agent has no such tool{nearest(name, has)}"
        yield value_fault(settings, ("confirm", number), name, allowed).in_file(file)
    choice = table.tool_choice
    if choice is None or is_external(choice, servers):
        return
    if choice not in (*CHOICES, *built_in, *own):
        choices = ", ".join((*CHOICES, *built_in, *own))
        text = f'tool_choice is "{choice}"; this agent has no such tool. Known: {choices}.'
        yield FileProblem(file=file, line=settings.lines.get(("tool_choice",)), text=text)


def _of_tools_file(file: Path, error: SettingsError) -> FileProblem:
    """Convert an error of `tools.py` to a problem.

    If the error is about a line of the file, its value contains the line.
    """
    what = str(error).removeprefix(f"Setting {error.name} is {error.value!r}; ")
    match = re.fullmatch(rf"(?:(.*) in )?{re.escape(str(file.resolve()))}(?::(\d+))?", str(error.value), re.DOTALL)
    if match is None:
        return FileProblem(file=file, text=str(error))
    function, line = match.groups()
    return FileProblem(file=file, line=int(line) if line else None, text=f"{function}: {what}" if function else what)


def _agent(name: str, persona: str, table: AgentTable, limits: Limits) -> Agent:
    limits = limits.with_given(table.limits)
    return Agent(
        name=name,
        prompt=Prompt(identity=persona or CHAT.prompt.identity, tone=table.tone.strip(), rules=table.rules.strip()),
        description=table.description,
        starters=tuple(table.starters),
        model=table.model,
        window=table.window,
        sampling=Sampling(
            temperature=table.temperature,
            max_tokens=table.max_tokens,
            reasoning_effort=table.reasoning_effort,
            tool_choice=table.tool_choice,
            output=None if table.output is None else dump(table.output).decode(),
        ),
        titles=table.titles,
        client_system=table.client_system,
        client_view=table.client_view,
        vision=table.vision,
        tools=tuple(table.tools),
        confirm=tuple(table.confirm),
        mode=table.mode,
        file_input=file_input(table.file_input),
        quote=table.quote,
        datasets=tuple(table.datasets),
        history=table.history,
        budget=table.budget,
        select=_phase(SELECT, table.phases.select),
        execute=_phase(EXECUTE, table.phases.execute),
        directory_tokens=table.directory_tokens,
        cases=table.cases,
        voices=table.voices,
        voice=table.voice if table.voice in table.voices else next(iter(table.voices), table.voice),
        tiers={name: limits.with_given(more) for name, more in table.tiers.items()},
        locale=table.locale,
        timezone=table.timezone,
        tool_calling=table.tool_calling,
        call_form=table.call_form,
        activation=table.activation,
        # The cast is safe, because YAML values have no other types.
        options=cast("Mapping[str, Json]", table.options),
        fold=_fold_settings(table),
        compact=CompactSettings(**table.compact.model_dump(exclude_none=True)),
        summary=summary_settings(table.summary, table.locale),
        limits=limits,
    )


def _fold_settings(table: AgentTable) -> FoldSettings:
    has_recall = RECALL in table.tools
    settings = with_table(FoldSettings(), table.fold)
    if settings.cost and table.fold.cost.placeholder is None:
        placeholder = placeholder_in(table.locale, has_recall=has_recall)
        settings = replace(settings, cost=replace(settings.cost, placeholder=placeholder))
    return with_recall_hint(settings, table.locale) if has_recall else settings


def _phase(phase: Phase, table: PhaseTable) -> Phase:
    """Return a phase with the settings of a table.

    None is a valid value (`history: all`), so use the set of given fields to see if the table sets `history`.
    """
    history = table.history if "history" in table.model_fields_set else phase.history
    return replace(phase, history=history, budget=table.budget or phase.budget)
