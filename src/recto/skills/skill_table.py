"""The settings of `SKILL.md` that are ours: what a skill needs to know, and what it is asked for. Checked here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import AfterValidator, BeforeValidator, Field

from recto.config.checked import Table, TableForm, Word, check, value_fault
from recto.config.problem import Fault
from recto.config.yaml_values import Values
from recto.skills.known import PLAIN, SKILL_DATA
from recto.skills.skill import BIRTH_INFO, Scenario

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PATH = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[^\s.]{1,64}){0,15}")
# What is known without being declared.
NAMES_OR_TABLE = "it is a list of names, or a table of names, each with description and rule_ids"


def _tool(value: str) -> str:
    if not TOOL_NAME.fullmatch(value):
        raise ValueError("it is the name of a tool: 1 to 64 letters, digits, - or _")
    return value


def _path(value: str) -> str:
    if not PATH.fullmatch(value):
        raise ValueError("it is a dotted path such as birth_info or life_context.career")
    if value.partition(".")[0] in PLAIN:
        raise ValueError("that is always known. Take it out")
    return value


def _by_name(value: object) -> object:
    """A list of names is a table of scenarios that say no more."""
    if not isinstance(value, list):
        return value
    items = cast("list[object]", value)
    names = [item for item in items if isinstance(item, str)]
    if len(names) < len(items):
        raise ValueError(NAMES_OR_TABLE)
    return {name: ScenarioTable() for name in names}


class ScenarioTable(Table):
    """`scenarios.<name>`: what a skill may be asked for, and the rules whose cases come first then."""

    description: str = ""
    rule_ids: list[Word] = Field(default_factory=list[str])


class OwnTable(Table):
    """Every setting of a skill that is ours."""

    profile_fields: list[Annotated[str, AfterValidator(_path)]] = Field(default_factory=list[str])
    requires_birth_info: bool = False
    requires_compute: bool = False
    compute_type: str = ""
    compute_tool: Annotated[str, AfterValidator(_tool)] = ""
    collect_tool: Annotated[str, AfterValidator(_tool)] = ""
    triggers: list[Word] = Field(default_factory=list[str])
    scenarios: Annotated[dict[Word, ScenarioTable], BeforeValidator(_by_name)] = Field(
        default_factory=dict[str, ScenarioTable]
    )
    default_scenario: str | None = None


OWN = tuple(OwnTable.model_fields)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a skill may know: the fields it declares, and whether its own data is among that."""

    skill: str
    fields: tuple[str, ...] = ()
    has_data: bool = False

    def may_ask(self, path: str) -> bool:
        """Whether a path leads to what is known: at or below a declared field, own data, or what is always known."""
        own = (f"{SKILL_DATA}.{self.skill}",) if self.has_data else ()
        return path in PLAIN or any(is_at(path, field) for field in (*self.fields, *own))


def is_at(path: str, field: str) -> bool:
    """Whether a path is another, or leads further down from there."""
    return path == field or path.startswith(f"{field}.")


def check_own(found: Values, skill: str) -> tuple[OwnTable, Needs, tuple[Fault, ...]]:
    """Our settings among those found, what of the user they declare, and every fault in them."""
    ours = part_of(found, OWN)
    scenarios = ours.values.get("scenarios")
    named = scenarios if isinstance(scenarios, dict) else {}
    form = TableForm(
        root=OwnTable,
        tables={("scenarios", str(name)): ScenarioTable for name in named},
        mixed={("scenarios",): NAMES_OR_TABLE},
    )
    table, faults = check(ours, form)
    needs = _needs(table, skill)
    return table, needs, (*faults, *_further(table, ours, skill))


def part_of(found: Values, names: Collection[str]) -> Values:
    """The values of some settings alone."""
    return Values(
        values={name: value for name, value in found.values.items() if name in names},
        lines={place: line for place, line in found.lines.items() if place[0] in names},
        names={place: line for place, line in found.names.items() if place[0] in names},
        unread=tuple([place for place in found.unread if place[0] in names]),
    )


def _needs(table: OwnTable, skill: str) -> Needs:
    own = f"{SKILL_DATA}.{skill}"
    declared = [path for path in table.profile_fields if not is_at(path, SKILL_DATA)]
    is_asked = table.requires_birth_info and BIRTH_INFO not in declared
    fields = dict.fromkeys([BIRTH_INFO, *declared] if is_asked else declared)
    has_data = table.requires_compute or any(is_at(path, own) for path in table.profile_fields)
    return Needs(skill=skill, fields=tuple(fields), has_data=has_data)


def _further(table: OwnTable, found: Values, skill: str) -> Iterator[Fault]:
    """What the type of a single value does not tell."""
    own = f"{SKILL_DATA}.{skill}"
    for number, path in enumerate(table.profile_fields):
        if is_at(path, SKILL_DATA) and not is_at(path, own):
            yield value_fault(found, ("profile_fields", number), path, f"a skill reads its own data only: {own}")
    wanted = table.default_scenario
    # Scenarios that have a fault are not known, so nobody can say that this is none of them.
    is_known = "scenarios" not in found.values or "scenarios" in table.model_fields_set
    if wanted is not None and is_known and wanted not in table.scenarios:
        known = ", ".join(table.scenarios) or "none"
        yield value_fault(found, ("default_scenario",), wanted, f"it is one of the scenarios. Known: {known}")


def scenarios_of(table: Mapping[str, ScenarioTable]) -> tuple[Scenario, ...]:
    """The scenarios in their order. The name of each is among its rules."""
    return tuple(
        [
            Scenario(
                name=name,
                description=one.description.strip(),
                rule_ids=tuple(dict.fromkeys((name, *one.rule_ids))),
            )
            for name, one in table.items()
        ]
    )
