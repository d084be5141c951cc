"""Loading of an agent's folder: `AGENT.md` and its variants, skills and tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from recto.config.problem import Fault, FileProblem
from recto.config.settings import Limits
from recto.config.table_check import nearest, value_fault
from recto.config.yaml_values import Values
from recto.conversation.json import Json, dump
from recto.errors import SettingsError
from recto.page.facts import EXECUTE, SELECT, Phase
from recto.page.fold.fold_settings import RECALL, FoldSettings, placeholder_in, with_recall_hint
from recto.page.prompt.system_prompt import Prompt
from recto.page.steps.compact import CompactSettings
from recto.skills.load_skills import load_skills
from recto.skills.skill import Skill

FILE, TOOLS_FILE = "AGENT.md", "tools.py"
SKILLS, PROFILE = "skills", "profile"
# Languages of variants: `AGENT.en.md`.
VARIANTS = ("en", "zh")
NAME = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,63}")
NAME_RULE = "an agent's name has 1 to 64 letters, digits, - or _, all ASCII, and does not begin with _"
CHOICES = ("auto", "none", "required")
# Tools that come with skills; their names are reserved.
SKILL_TOOLS = ("use_skill", "read_skill_file")
NO_FIRST = (
    f"there is no {FILE} beside it, and it contains only differences from that. Write {FILE}, or rename it to that."
)


@dataclass(frozen=True, kw_only=True)
class Toolbox:
    """Names of the built-in tools, and functions that return the tools of an agent's folder and warnings about them.

    `of_folder` raises SettingsError for a folder whose tools cannot be loaded.
    """

    built_in: Collection[str]
    of_folder: Callable[[Path], Collection[str]]
    warnings_of: Callable[[Path], Iterable[FileProblem]] = lambda _folder: ()


@dataclass(frozen=True, kw_only=True)
class ReadAgent:
    """Content of an agent's folder. With `problems` the agent is unusable; broken skills are only left out."""

    agent: Agent
    problems: tuple[FileProblem, ...] = ()
    broken_skills: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FolderContents:
    """Skills and profile schema of an agent's folder. With `problems` the agent is unusable."""

    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    profile_schema: str | None = None
    field_titles: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: tuple[FileProblem, ...] = ()
    broken_skills: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()


def load_variants(folder: Path, limits: Limits, tools: Toolbox | None = None) -> Mapping[str, ReadAgent]:
    """Load an agent and its variants by name: `vibe`, and `vibe-en` for `AGENT.en.md`.

    A variant contains only differences from `AGENT.md`. A broken agent has no variants.
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
        has_file, document = file.exists(), _document(file, locale)
    except OSError as error:
        text = f"it cannot be read ({error.strerror}). Fix or remove it."
        return ReadAgent(agent=CHAT, problems=(FileProblem(file=file, line=None, text=text),))
    if missing := _missing(folder, locale):
        return ReadAgent(agent=CHAT, problems=(missing,))
    table, faults = check_settings(document.settings, folder.name)
    faults = (*faults, *(_locale_faults(document, locale) if locale else ()))
    problems = [
        FileProblem(file=file, line=fault.line, text=fault.text)
        for fault in sorted(faults, key=lambda fault: fault.line)
    ]
    name = f"{folder.name}-{locale}" if locale else folder.name
    problems += (*_name_problems(folder, name), *_workspace_problems(file, document, table))
    contents = _read_contents(folder, table.locale)
    problems += (*contents.problems, *(_tool_problems(file, document, table, tools) if tools else ()))
    if problems:
        return ReadAgent(agent=CHAT, problems=tuple(problems), broken_skills=contents.broken_skills)
    agent = replace(
        _agent(name, document.body, table, limits),
        variant_of=folder.name if locale else None,
        skills=contents.skills,
        profile_schema=contents.profile_schema,
        field_titles=contents.field_titles,
        mcp=mcp_settings(table.mcp, document.settings, file),
        openapi=openapi_settings(table.openapi, document.settings, file),
        workspace=(folder / table.workspace).resolve() if table.workspace else None,
    )
    warnings = [FileProblem(file=file, line=fault.line, text=fault.text) for fault in agent_warnings(agent, document)]
    if not has_file:
        warnings = [FileProblem(file=folder, line=None, text=f"there is no {FILE} in it: {NO_PERSONA}")]
    warnings += _tool_warnings(folder, tools) if tools else ()
    return ReadAgent(agent=agent, broken_skills=contents.broken_skills, warnings=(*warnings, *contents.warnings))


def lint(agent: Agent, folder: Path, tools: Toolbox) -> Iterator[FileProblem]:
    """Yield warnings about an agent's skills. Counting tokens is slow, so servers do not call it at start."""
    reading = with_reading(agent.tools, agent.file_input.takes_documents)
    tool_names = (*tools.built_in, *reading, *tools.of_folder(folder), *SKILL_TOOLS)
    for skill, text in skill_warnings(agent, tool_names):
        yield FileProblem(
            file=agent.skills[skill].folder / "SKILL.md" if skill else folder / FILE, line=None, text=text
        )


def _variant_of(name: str, locale: str) -> str:
    """Return the name of a file's variant."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{locale}.{ending}"


def _document(file: Path, locale: str | None) -> MarkdownFile:
    """Read a file. A variant is merged over the agent's own file."""
    document = read_document(_beginning(file)) if file.exists() else MarkdownFile()
    first = file.with_name(FILE)
    return _over(read_document(_beginning(first)), document, locale) if locale and first.exists() else document


def _beginning(file: Path) -> bytes:
    """Read a file up to one byte over the limit, to detect larger ones."""
    with file.open("rb") as stream:
        return stream.read(LONGEST + 1)


def _over(first: MarkdownFile, variant: MarkdownFile, locale: str | None) -> MarkdownFile:
    """Merge a variant over the agent's own file, whose faults are reported there."""
    own, base = variant.settings, first.settings
    values = {**base.values, "locale": locale, **own.values}
    all_values = Values(values=values, lines=own.lines, names={**base.names, **own.names}, faults=own.faults)
    return replace(variant, settings=replace(all_values, unread=own.unread), body=variant.body or first.body)


def _missing(folder: Path, locale: str | None) -> FileProblem | None:
    """Return the problem of a folder without the required files, if any."""
    if (folder / FILE).exists():
        return None
    variants = [folder / _variant_of(FILE, one) for one in ((locale,) if locale else VARIANTS)]
    files = [file for file in variants if file.exists()]
    has_more = (folder / TOOLS_FILE).exists() or (folder / SKILLS).is_dir()
    if files and (locale or not has_more):
        return FileProblem(file=files[0], line=None, text=NO_FIRST)
    text = f"there is neither {FILE} nor {TOOLS_FILE} in it. Write one, or begin its name with _ to leave it out."
    return None if has_more else FileProblem(file=folder, line=None, text=text)


def _locale_faults(document: MarkdownFile, locale: str) -> Iterator[Fault]:
    """Yield a fault if a variant's `locale` differs from its file name. The schema reports unknown languages."""
    language = document.settings.values.get("locale")
    if language in VARIANTS and language != locale:
        allowed = f"the file name selects {locale}. Remove the line or rename the file"
        yield value_fault(document.settings, ("locale",), language, allowed)


def _name_problems(folder: Path, name: str) -> Iterator[FileProblem]:
    if not NAME.fullmatch(folder.name):
        yield FileProblem(file=folder, line=None, text=f"{NAME_RULE}. Rename the folder.")
    elif not NAME.fullmatch(name):
        text = f"in another language it would be {name}, but {NAME_RULE}. Shorten the folder's name."
        yield FileProblem(file=folder, line=None, text=text)


def _workspace_problems(file: Path, document: MarkdownFile, table: AgentTable) -> Iterator[FileProblem]:
    """Yield a problem if the workspace, relative to the agent's folder, does not exist."""
    if table.workspace and not (file.parent / table.workspace).is_dir():
        fault = value_fault(
            document.settings, ("workspace",), table.workspace, "there is no such folder. Make it first"
        )
        yield FileProblem(file=file, line=fault.line, text=fault.text)


def _read_contents(folder: Path, locale: str) -> FolderContents:
    """Read the skills and the profile schema of an agent's folder in a language."""
    result = load_skills(folder / SKILLS, locale)
    return replace(
        _read_profile(folder, locale),
        skills=result.skills,
        broken_skills=tuple([problem for problems in result.broken.values() for problem in problems]),
        warnings=result.warnings,
    )


def _read_profile(folder: Path, locale: str) -> FolderContents:
    names = (f"{PROFILE}.{locale}.yaml", f"{PROFILE}.yaml")
    file = next((folder / name for name in names if (folder / name).exists()), None)
    if file is None:
        return FolderContents()
    try:
        values = read_settings(_beginning(file))
    except OSError as error:
        text = f"it cannot be read ({error.strerror}). Fix or remove it."
        return FolderContents(problems=(FileProblem(file=file, line=None, text=text),))
    faults = values.faults or tuple(schema_faults(values.values, values, ()))
    if faults:
        return FolderContents(problems=tuple([FileProblem(file=file, line=one.line, text=one.text) for one in faults]))
    return FolderContents(profile_schema=dump(values.values).decode(), field_titles=_titles(values.values))


def _titles(schema: Mapping[str, Json]) -> Mapping[str, str]:
    fields = schema.get("properties")
    names = cast("Mapping[str, Json]", fields if isinstance(fields, Mapping) else {})
    return {name: title for name, one in names.items() if isinstance(one, Mapping) and (title := _title(one))}


def _title(schema: Mapping[str, Json]) -> str:
    title = schema.get("title")
    return title if isinstance(title, str) else ""


def _tool_problems(file: Path, document: MarkdownFile, table: AgentTable, tools: Toolbox) -> Iterator[FileProblem]:
    """Yield problems of tools that do not exist, cannot be loaded, or have a duplicate name."""
    folder, settings = file.parent, document.settings
    for fault in check_tools(settings, table, tools.built_in):
        yield FileProblem(file=file, line=fault.line, text=fault.text)
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
        text += _whose(name, table)
        line = settings.lines.get(("tools",))
        yield FileProblem(file=file if line else folder / TOOLS_FILE, line=line, text=text)
    has, servers = (*names, *own), (*table.mcp, *table.openapi)
    for number, name in enumerate(table.confirm):
        if name in has or is_external(name, servers):
            continue
        fault = value_fault(settings, ("confirm", number), name, f"this agent has no such tool{nearest(name, has)}")
        yield FileProblem(file=file, line=fault.line, text=fault.text)
    choice = table.tool_choice
    if choice is None or is_external(choice, servers):
        return
    if choice not in (*CHOICES, *built_in, *own):
        choices = ", ".join((*CHOICES, *built_in, *own))
        text = f'tool_choice is "{choice}"; this agent has no such tool. Known: {choices}.'
        yield FileProblem(file=file, line=settings.lines.get(("tool_choice",)), text=text)


def _tool_warnings(folder: Path, tools: Toolbox) -> Iterator[FileProblem]:
    """Yield warnings about the agent's tools, with the path of their file as the user named it."""
    file = folder / TOOLS_FILE
    for one in tools.warnings_of(folder):
        yield replace(one, file=file) if one.file == file.resolve() else one


def _whose(name: str, table: AgentTable) -> str:
    if name in SKILL_TOOLS:
        return "; agents with skills have it."
    return f", or leave {name} out of `tools`." if name in table.tools else "; agents that accept documents have it."


def _of_tools_file(file: Path, error: SettingsError) -> FileProblem:
    """Convert an error of `tools.py` to a problem. Its value contains the line, if it is about a line of the file."""
    what = str(error).removeprefix(f"Setting {error.name} is {error.value!r}; ")
    match = re.fullmatch(rf"(?:(.*) in )?{re.escape(str(file.resolve()))}(?::(\d+))?", str(error.value), re.DOTALL)
    if match is None:
        return FileProblem(file=file, line=None, text=str(error))
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
        sampling=_sampling(table),
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
        options=_options(table),
        fold=_fold_settings(table),
        compact=CompactSettings(**table.compact.model_dump(exclude_none=True)),
        summary=summary_settings(table.summary, table.locale),
        limits=limits,
    )


def _options(table: AgentTable) -> Mapping[str, Json]:
    # YAML values have no other types.
    return cast("Mapping[str, Json]", table.options)


def _fold_settings(table: AgentTable) -> FoldSettings:
    has_recall = RECALL in table.tools
    settings = with_table(FoldSettings(), table.fold)
    if settings.cost and table.fold.cost.placeholder is None:
        placeholder = placeholder_in(table.locale, has_recall=has_recall)
        settings = replace(settings, cost=replace(settings.cost, placeholder=placeholder))
    return with_recall_hint(settings, table.locale) if has_recall else settings


def _phase(phase: Phase, table: PhaseTable) -> Phase:
    """Return a phase with the settings of a table. `history: all` is None, so the table tells if it was set."""
    history = table.history if "history" in table.model_fields_set else phase.history
    return replace(phase, history=history, budget=table.budget or phase.budget)


def _sampling(table: AgentTable) -> Sampling:
    return Sampling(
        temperature=table.temperature,
        max_tokens=table.max_tokens,
        reasoning_effort=table.reasoning_effort,
        tool_choice=table.tool_choice,
        output=None if table.output is None else dump(table.output).decode(),
    )
