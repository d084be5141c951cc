"""`SKILL.md` (S5): the Agent Skills format as public skills have it, and our settings. Refuses what has no description.

What a public skill says beyond that is kept as it is, or left out with a warning: it must load as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from recto.config.checked import line_of, short, value_fault
from recto.config.problem import Fault, FileProblem
from recto.config.yaml_values import Values
from recto.conversation.json import Json, dump
from recto.skills.localized import LocalizedFile
from recto.skills.skill import CORE, Skill
from recto.skills.skill_table import OWN, Needs, OwnTable, check_own, scenarios_of

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME_RULE = "a skill's name has 1 to 64 letters, digits, - or _, all ASCII"
LONGEST_DESCRIPTION = 1_024
# What Agent Skills has a name for; what else there is, is kept among the metadata too.
KEPT = ("compatibility", "version")
PUBLIC = ("name", "description", "license", "metadata", "allowed-tools", *KEPT)
HEADING = re.compile(r"#[ \t]+(?P<title>\S.*?)([ \t]+#+)?[ \t]*")
IS_CORE = f"a skill cannot be named {CORE}, which means to have none. Rename it: the agent's own persona is {CORE}."
NO_DESCRIPTION = "it has no description, by which a skill is chosen. Add `description: ...` between two lines of `---`."
NO_BODY = "it says nothing below its settings. Say who the expert is and what they do."


@dataclass(frozen=True, kw_only=True)
class ReadSkill:
    """What was read of a SKILL.md. With problems the skill is not the one that was meant."""

    skill: Skill
    needs: Needs
    problems: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()


def skill_of(written: LocalizedFile, folder: Path) -> ReadSkill:
    """The skill of a file, with all that is wrong with it. Its procedure, cases and files come from elsewhere."""
    found = written.settings
    name = _name(found, folder.name)
    table, needs, faults = check_own(found, name)
    description = _text(found.values.get("description"))
    problems = [*found.faults, *_refused(found, name, description), *faults]
    doubts = [*written.doubts, *_warnings(written, folder.name, name, description or "")]
    return ReadSkill(
        skill=_skill(written, table, needs, folder),
        needs=needs,
        # How a broken file had to be read tells why it has not what it should have.
        problems=written.problems([*problems, *written.doubts]) if problems else (),
        warnings=written.problems(doubts),
    )


def _skill(written: LocalizedFile, table: OwnTable, needs: Needs, folder: Path) -> Skill:
    values = written.settings.values
    title, identity = _persona(written.body)
    scenarios = scenarios_of(table.scenarios)
    tools = (*_tool_names(values.get("allowed-tools")), table.compute_tool, table.collect_tool)
    return Skill(
        name=needs.skill,
        description=_text(values.get("description")) or "",
        title=title or needs.skill,
        identity=identity,
        folder=folder,
        license=_text(values.get("license")) or "",
        fields=needs.fields,
        has_data=needs.has_data,
        requires_birth_info=table.requires_birth_info,
        requires_compute=table.requires_compute,
        compute_type=table.compute_type.strip(),
        compute_tool=table.compute_tool,
        collect_tool=table.collect_tool,
        triggers=tuple(dict.fromkeys(table.triggers)),
        scenarios=scenarios,
        default_scenario=table.default_scenario or (scenarios[0].name if scenarios else None),
        tools=tuple(dict.fromkeys(filter(None, tools))),
        metadata=_metadata(values),
    )


def _name(found: Values, folder_name: str) -> str:
    """The name that is declared, if it can be one; else that of the folder."""
    declared = _text(found.values.get("name"))
    return declared if declared and NAME.fullmatch(declared) else folder_name


def _text(value: Json) -> str | None:
    """What people wrote as a text without quotes may look like a number; what is nothing, or a table, is no text."""
    match value:
        case str():
            return value.strip()
        case bool() | int() | float():
            return dump(value).decode()
        case _:
            return None


def _persona(body: str) -> tuple[str, str]:
    """The title, where the first line is a heading, and what follows."""
    first, _, rest = body.partition("\n")
    heading = HEADING.fullmatch(first)
    return (heading["title"], rest.strip()) if heading else ("", body)


def _tool_names(value: Json) -> tuple[str, ...]:
    """The names in `Read, Bash(git add:*) Write`, or in a list of such, without what stands in parentheses."""
    match value:
        case str():
            return tuple(_outside_parentheses(value).replace(",", " ").split())
        case list():
            return tuple([name for item in value if isinstance(item, str) for name in _tool_names(item)])
        case _:
            return ()


def _outside_parentheses(text: str) -> str:
    depth = 0
    kept: list[str] = []
    for character in text:
        depth += character == "("
        kept.append(" " if depth else character)
        depth -= character == ")" and depth > 0
    return "".join(kept)


def _metadata(values: Mapping[str, Json]) -> dict[str, Json]:
    """What the table of that name says, and every setting that is nobody's."""
    given = values.get("metadata")
    nested: Mapping[str, Json] = given if isinstance(given, dict) else {"metadata": given} if given else {}
    known = {*OWN, *PUBLIC} - {*KEPT}
    others = {name: value for name, value in values.items() if name not in known and value is not None}
    return {**nested, **others}


# What is wrong


def _refused(found: Values, name: str, description: str | None) -> Iterator[Fault]:
    if name.lower() == CORE:
        yield Fault(line=line_of(found, ("name",)), text=IS_CORE)
    elif not NAME.fullmatch(name):
        text = f"the folder's name {short(name)!r} is none for a skill: {NAME_RULE}. Add `name: ...`."
        yield Fault(line=line_of(found, ("name",)), text=text)
    value = found.values.get("description")
    if isinstance(value, dict | list):
        yield value_fault(found, ("description",), value, "it is text; put it in quotes")
    # A file that could not be read has no settings at all, and that is told already.
    elif not description and not found.faults:
        yield Fault(line=line_of(found, ("description",)), text=NO_DESCRIPTION)


def _warnings(written: LocalizedFile, folder_name: str, name: str, description: str) -> Iterator[Fault]:
    """What is not as Agent Skills has it, or hardly meant."""
    found = written.settings
    if "name" in found.values:
        yield from _name_warnings(found, folder_name, name)
    if len(description) > LONGEST_DESCRIPTION:
        text = f"description has {len(description)} characters; Agent Skills allows {LONGEST_DESCRIPTION}. Shorten it."
        yield Fault(line=line_of(found, ("description",)), text=text)
    tools = found.values.get("allowed-tools")
    if not isinstance(tools, str | None) and not _are_texts(tools):
        yield value_fault(
            found, ("allowed-tools",), tools, "it is names of tools, as text or as a list. What is not is left out"
        )
    if not isinstance(found.values.get("metadata"), dict | None):
        yield value_fault(found, ("metadata",), found.values["metadata"], "it is a table of names and values")
    yield from _near_names(found, {*OWN, *PUBLIC})
    if not written.body:
        yield Fault(line=written.end_line, text=NO_BODY)


def _name_warnings(found: Values, folder_name: str, name: str) -> Iterator[Fault]:
    declared = _text(found.values["name"])
    if declared != name:
        allowed = f"{NAME_RULE}, so the folder's stands: {folder_name}"
        yield value_fault(found, ("name",), found.values["name"], allowed)
    elif name != folder_name:
        yield value_fault(found, ("name",), name, f"the folder is named {short(folder_name)!r}. Give both one name")


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _near_names(found: Values, known: Collection[str]) -> Iterator[Fault]:
    """Names that are nobody's are free, but one that is nearly ours is a slip."""
    for name in found.values:
        near = get_close_matches(name.lower(), known, n=1, cutoff=0.8) if name not in known else ()
        if near:
            text = f"there is no setting {short(name)}; did you mean {near[0]}? It is kept among the metadata."
            yield Fault(line=found.names.get((name,), 1), text=text)
