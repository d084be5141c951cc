"""Reading of `SKILL.md` (S5): the Agent Skills format, and Recto's own settings.

Recto validates its own settings and requires a description. Public skills must load unchanged, so other settings are
copied unchanged, or omitted with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, cast

from pydantic import BeforeValidator, Field

from recto.config.problem import Fault, FileProblem
from recto.config.table_check import Table, TableForm, Word, check, line_of, matching, require, short, value_fault
from recto.config.yaml_values import Values
from recto.conversation.json import Json, dump
from recto.skills.known_data import PLAIN, SKILL_DATA
from recto.skills.localized import LocalizedFile
from recto.skills.skill import BIRTH_INFO, CORE, Scenario, Skill

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME_RULE = "a skill's name has 1 to 64 letters, digits, - or _, all ASCII"
LONGEST_DESCRIPTION, LONGEST_TITLE = 1_024, 60
# Settings of Agent Skills, and `title`. COPIED and all unknown settings become part of the metadata.
COPIED = ("compatibility", "version")
PUBLIC = ("name", "title", "description", "license", "metadata", "allowed-tools", *COPIED)
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PATH = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[^\s.]{1,64}){0,15}")
HEADING = re.compile(r"#[ \t]+(?P<words>\S.*?)([ \t]+#+)?[ \t]*")
IS_CORE = f"a skill cannot be named {CORE}, which means no skill. Rename it."
NO_DESCRIPTION = "it has no description, which selects a skill. Add `description: ...` between two lines of `---`."
NO_BODY = "it has no text below its settings. Describe the expert there."
NAMES_OR_TABLE = "it is a list of names, or a table of names, each with description and rule_ids"


ProfilePath = Annotated[
    str,
    matching(PATH, "it is a dotted path such as birth_info or life_context.career"),
    require(lambda value: value.partition(".")[0] not in PLAIN, "it is always available. Remove it"),
]
ToolName = Annotated[str, matching(TOOL_NAME, "it is the name of a tool: 1 to 64 letters, digits, - or _")]


def _by_name(value: object) -> object:
    """Convert a list of names to a table of scenarios."""
    if not isinstance(value, list):
        return value
    items = cast("list[object]", value)
    names = [item for item in items if isinstance(item, str)]
    if len(names) < len(items):
        raise ValueError(NAMES_OR_TABLE)
    return {name: ScenarioTable() for name in names}


class ScenarioTable(Table):
    """Settings of `scenarios.<name>`. Cases linked to its rules rank first."""

    description: str = ""
    rule_ids: list[Word] = Field(default_factory=list[str])


class OwnTable(Table):
    """Recto's own settings of a skill."""

    profile_fields: list[ProfilePath] = Field(default_factory=list[str])
    requires_birth_info: bool = False
    requires_compute: bool = False
    compute_type: str = ""
    compute_tool: ToolName = ""
    collect_tool: ToolName = ""
    triggers: list[Word] = Field(default_factory=list[str])
    scenarios: Annotated[dict[Word, ScenarioTable], BeforeValidator(_by_name)] = Field(
        default_factory=dict[str, ScenarioTable]
    )
    default_scenario: str | None = None


OWN = tuple(OwnTable.model_fields)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """User data that a skill may read: its declared fields, and its own data if `has_data`."""

    skill: str
    fields: tuple[str, ...] = ()
    has_data: bool = False

    def may_ask(self, path: str) -> bool:
        """Return True if the skill may read a path."""
        own = (f"{SKILL_DATA}.{self.skill}",) if self.has_data else ()
        return path in PLAIN or any(_is_at(path, field) for field in (*self.fields, *own))


def _is_at(path: str, field: str) -> bool:
    """Return True if a path equals the field or is below the field."""
    return path == field or path.startswith(f"{field}.")


@dataclass(frozen=True, kw_only=True)
class ReadSkill:
    """Content of a SKILL.md. If there are problems, the skill is incomplete."""

    skill: Skill
    needs: Needs
    problems: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()


def skill_of(document: LocalizedFile, folder: Path) -> ReadSkill:
    """Return the skill of a file, without its procedure, cases and files, and all problems."""
    settings = document.settings
    own_name = _text(settings.values.get("name"))
    name = own_name if own_name and NAME.fullmatch(own_name) else folder.name
    table, needs, faults = _check_own(settings, name)
    description = _text(settings.values.get("description"))
    problems = [*settings.faults, *_check_required(settings, name, description), *faults]
    warnings = [*settings.warnings, *_warnings(document, folder.name, name, description or "")]
    return ReadSkill(
        skill=_skill(document, table, needs, folder),
        needs=needs,
        # Add the warnings of the YAML reader, which may explain the problems.
        problems=document.problems([*problems, *settings.warnings]) if problems else (),
        warnings=document.problems(warnings),
    )


def _check_own(settings: Values, skill: str) -> tuple[OwnTable, Needs, tuple[Fault, ...]]:
    """Return Recto's own settings, the user data that they declare, and their faults."""
    # Validate only Recto's own settings.
    ours = Values(
        values={name: value for name, value in settings.values.items() if name in OWN},
        lines={place: line for place, line in settings.lines.items() if place[0] in OWN},
        names={place: line for place, line in settings.names.items() if place[0] in OWN},
        unread=tuple([place for place in settings.unread if place[0] in OWN]),
    )
    scenarios = ours.values.get("scenarios")
    scenario_table = scenarios if isinstance(scenarios, dict) else {}
    form = TableForm(
        root=OwnTable,
        tables={("scenarios", str(name)): ScenarioTable for name in scenario_table},
        mixed={("scenarios",): NAMES_OR_TABLE},
    )
    table, faults = check(ours, form)
    own = f"{SKILL_DATA}.{skill}"
    paths = [path for path in table.profile_fields if not _is_at(path, SKILL_DATA)]
    is_asked = table.requires_birth_info and BIRTH_INFO not in paths
    fields = dict.fromkeys([BIRTH_INFO, *paths] if is_asked else paths)
    has_data = table.requires_compute or any(_is_at(path, own) for path in table.profile_fields)
    needs = Needs(skill=skill, fields=tuple(fields), has_data=has_data)
    return table, needs, (*faults, *_own_faults(table, ours, skill))


def _own_faults(table: OwnTable, settings: Values, skill: str) -> Iterator[Fault]:
    """Yield faults that the schema does not find."""
    own = f"{SKILL_DATA}.{skill}"
    for number, path in enumerate(table.profile_fields):
        if _is_at(path, SKILL_DATA) and not _is_at(path, own):
            yield value_fault(settings, ("profile_fields", number), path, f"a skill reads its own data only: {own}")
    scenario = table.default_scenario
    # If the scenarios have a fault, their names are unknown, so the default cannot be checked.
    is_known = "scenarios" not in settings.values or "scenarios" in table.model_fields_set
    if scenario is not None and is_known and scenario not in table.scenarios:
        names = ", ".join(table.scenarios) or "none"
        yield value_fault(settings, ("default_scenario",), scenario, f"it is one of the scenarios. Known: {names}")


def _text(value: Json) -> str | None:
    """Return a scalar as text, because text without quotes may look like a number. Return None for other values."""
    match value:
        case str():
            return value.strip()
        case bool() | int() | float():
            return dump(value).decode()
        case _:
            return None


def _skill(document: LocalizedFile, table: OwnTable, needs: Needs, folder: Path) -> Skill:
    values = document.settings.values
    # A heading in the first line becomes the title of the persona.
    first, _, rest = document.body.partition("\n")
    heading = HEADING.fullmatch(first)
    # The name of each scenario is one of its rules.
    scenarios = tuple(
        [
            Scenario(
                name=name, description=one.description.strip(), rule_ids=tuple(dict.fromkeys((name, *one.rule_ids)))
            )
            for name, one in table.scenarios.items()
        ]
    )
    tools = (*_tool_names(values.get("allowed-tools")), table.compute_tool, table.collect_tool)
    metadata = values.get("metadata")
    nested: Mapping[str, Json] = metadata if isinstance(metadata, dict) else {"metadata": metadata} if metadata else {}
    settings_names = {*OWN, *PUBLIC} - {*COPIED}
    others = {name: value for name, value in values.items() if name not in settings_names and value is not None}
    return Skill(
        name=needs.skill,
        description=_text(values.get("description")) or "",
        heading=heading["words"] if heading else needs.skill,
        identity=rest.strip() if heading else document.body,
        folder=folder,
        title=_title(values.get("title")),
        license=_text(values.get("license")) or "",
        fields=needs.fields,
        has_data=needs.has_data,
        requires_birth_info=table.requires_birth_info,
        requires_compute=table.requires_compute,
        compute_type=table.compute_type.strip(),
        compute_tool=table.compute_tool,
        collect_tool=table.collect_tool,
        triggers=tuple(dict.fromkeys(table.triggers)),
        scenarios=tuple(scenarios),
        default_scenario=table.default_scenario or (scenarios[0].name if scenarios else None),
        tools=tuple(dict.fromkeys(filter(None, tools))),
        metadata={**nested, **others},
    )


def _title(value: Json) -> str:
    """Return a valid title, else an empty text."""
    title = _text(value) or ""
    return title if len(title) <= LONGEST_TITLE and title.splitlines() == [title] else ""


def _tool_names(value: Json) -> tuple[str, ...]:
    """Return the tool names in a text such as `Read, Bash(git add:*) Write`, or in a list of such texts.

    Omit the parentheses.
    """
    match value:
        case str():
            depth = 0
            characters: list[str] = []
            for character in value:
                depth += character == "("
                characters.append(" " if depth else character)
                depth -= character == ")" and depth > 0
            return tuple("".join(characters).replace(",", " ").split())
        case list():
            return tuple([name for item in value if isinstance(item, str) for name in _tool_names(item)])
        case _:
            return ()


def _check_required(settings: Values, name: str, description: str | None) -> Iterator[Fault]:
    if name.lower() == CORE:
        yield Fault(line=line_of(settings, ("name",)), text=IS_CORE)
    elif not NAME.fullmatch(name):
        text = f"the folder's name {short(name)!r} is not valid: {NAME_RULE}. Add `name: ...`."
        yield Fault(line=line_of(settings, ("name",)), text=text)
    value = settings.values.get("description")
    if isinstance(value, dict | list):
        yield value_fault(settings, ("description",), value, "it is text; put it in quotes")
    # Report nothing for a file that could not be read: it has no settings, and its faults are already reported.
    elif not description and not settings.faults:
        yield Fault(line=line_of(settings, ("description",)), text=NO_DESCRIPTION)


def _warnings(document: LocalizedFile, folder_name: str, name: str, description: str) -> Iterator[Fault]:
    """Yield deviations from Agent Skills and likely mistakes."""
    settings = document.settings
    if "name" in settings.values and _text(settings.values["name"]) != name:
        allowed = f"{NAME_RULE}, so the folder's name applies: {folder_name}"
        yield value_fault(settings, ("name",), settings.values["name"], allowed)
    elif "name" in settings.values and name != folder_name:
        allowed = f"the folder is named {short(folder_name)!r}. Use one name for both"
        yield value_fault(settings, ("name",), name, allowed)
    if "title" in settings.values and not _title(settings.values["title"]):
        allowed = f"it is one line of up to {LONGEST_TITLE} characters, so clients show the name: {name}"
        yield value_fault(settings, ("title",), settings.values["title"], allowed)
    if len(description) > LONGEST_DESCRIPTION:
        text = f"description has {len(description)} characters; Agent Skills allows {LONGEST_DESCRIPTION}. Shorten it."
        yield Fault(line=line_of(settings, ("description",)), text=text)
    tools = settings.values.get("allowed-tools")
    if not isinstance(tools, str | None) and not (
        isinstance(tools, list) and all(isinstance(item, str) for item in tools)
    ):
        yield value_fault(
            settings, ("allowed-tools",), tools, "it is names of tools, as text or as a list. Others are left out"
        )
    if not isinstance(settings.values.get("metadata"), dict | None):
        yield value_fault(settings, ("metadata",), settings.values["metadata"], "it is a table of names and values")
    # Report unknown names that resemble a setting. All other names are allowed.
    names = {*OWN, *PUBLIC}
    for unknown in [unknown for unknown in settings.values if unknown not in names]:
        if near := get_close_matches(unknown.lower(), names, n=1, cutoff=0.8):
            text = f"there is no setting {short(unknown)}; did you mean {near[0]}? It is kept among the metadata."
            yield Fault(line=settings.names.get((unknown,), 1), text=text)
    if not document.body:
        yield Fault(line=document.end_line, text=NO_BODY)
