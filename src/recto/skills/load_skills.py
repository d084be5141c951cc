"""Loading of an agent's skills (S5), one per folder: `skills/<name>/SKILL.md`. Broken skills are omitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, NamedTuple, cast

from pydantic import BeforeValidator, Field

from recto.config.frontmatter import LONGEST, read_settings
from recto.config.problem import Fault, FileProblem
from recto.config.table_check import Table, TableForm, check, dotted, line_of, nearest, short, value_fault
from recto.config.yaml_values import Values, YamlPath
from recto.conversation.json import Json
from recto.skills.bundled import MOST_FILES, bundled_files
from recto.skills.cases import CASES, is_case, read_cases
from recto.skills.known_data import PLAIN
from recto.skills.localized import VARIANT, FileLanguage, LocalizedFile, read_localized
from recto.skills.safe_path import UnreadableFile, read_within
from recto.skills.skill import Skill
from recto.skills.skill_file import Needs, skill_of
from recto.skills.sop import AllOf, AnyOf, Condition, Differs, Equals, Has, Missing, Not, Sop, SopStep

TEXT_OR_LIST = "it is text, or a list of texts"
PATHS = "it is a path such as birth_info, or a list of paths"
BOTH_PATHS = "it is a list of two paths"
NO_STEPS = "it has no steps. Write them as a list: `- id: ...`, `text: ...`, and `when: ...` unless it is always due."
NEVER_DUE = "it is never due, because {before} before it always is. Give that one a `when`, or remove this one."
NOTHING_LEFT = "every step has a `when`, so nothing may be due at the end. Add a last step without one."


def _join_lines(value: object) -> object:
    """Convert a list of texts to one text of bullet points."""
    if not isinstance(value, list):
        return value
    items = cast("list[object]", value)
    texts = [item.strip() for item in items if isinstance(item, str)]
    if len(texts) < len(items):
        raise ValueError(TEXT_OR_LIST)
    return "\n".join([f"- {text}" for text in texts if text])


class StepTable(Table):
    """Settings of a step, `steps.<n>`."""

    id: str = ""
    title: str = ""
    when: dict[str, object] | None = None
    text: str = ""


class SopTable(Table):
    """Settings of a procedure."""

    steps: list[StepTable] = Field(default_factory=list[StepTable])
    rules: Annotated[str, BeforeValidator(_join_lines)] = ""
    tool_rules: Annotated[str, BeforeValidator(_join_lines)] = ""


class ReadSop(NamedTuple):
    """A procedure with its faults and warnings."""

    sop: Sop
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()


def read_sop(raw: bytes, needs: Needs) -> ReadSop:
    """Return the procedure of a file for a skill that may read `needs`."""
    values = read_settings(raw)
    steps = values.values.get("steps")
    form = TableForm(
        root=SopTable,
        tables={("steps", str(number)): StepTable for number in range(len(steps) if isinstance(steps, list) else 0)},
        mixed={("rules",): TEXT_OR_LIST, ("tool_rules",): TEXT_OR_LIST},
    )
    table, faults = check(values, form)
    if faults:
        return ReadSop(Sop(), faults)
    reading = _Conditions(values=values, needs=needs)
    sop_steps: list[SopStep] = []
    for number, step in enumerate(table.steps):
        # The cast is safe, because YAML values have no other types.
        condition = cast("Mapping[str, Json] | None", step.when)
        when = None if condition is None else reading.condition(condition, ("steps", number, "when"))
        name = step.id.strip()
        sop_steps.append(SopStep(id=name, title=step.title.strip() or name, text=step.text.strip(), when=when))
    faults = (*_step_faults(table.steps, values), *reading.faults)
    sop = Sop(steps=tuple(sop_steps), rules=table.rules.strip(), tool_rules=table.tool_rules.strip())
    return ReadSop(sop, faults, () if faults else tuple(_warnings(sop, values)))


def _step_faults(steps: Sequence[StepTable], values: Values) -> Iterator[Fault]:
    if not steps:
        yield Fault(line=line_of(values, ("steps",)), text=NO_STEPS)
    ids: set[str] = set()
    for number, step in enumerate(steps):
        place: YamlPath = ("steps", number)
        for name, value in (("id", step.id), ("text", step.text)):
            if not value.strip():
                yield Fault(line=line_of(values, (*place, name)), text=f"{dotted(place)} has no {name}. Add one.")
        if step.id.strip() and step.id.strip() in ids:
            yield value_fault(values, (*place, "id"), step.id, "another step has that id already")
        ids.add(step.id.strip())


def _warnings(sop: Sop, values: Values) -> Iterator[Fault]:
    always = [number for number, step in enumerate(sop.steps) if step.when is None]
    if not always:
        yield Fault(line=line_of(values, ("steps",)), text=NOTHING_LEFT)
        return
    before = sop.steps[always[0]].id
    for number in range(always[0] + 1, len(sop.steps)):
        text = f"steps.{number}: {NEVER_DUE.format(before=short(before))}"
        yield Fault(line=line_of(values, ("steps", number)), text=text)


# Conditions


@dataclass(frozen=True, kw_only=True)
class _Conditions:
    """Parser of conditions, which collects faults. A condition with a fault counts as true."""

    values: Values
    needs: Needs
    faults: list[Fault] = field(default_factory=list[Fault])

    def condition(self, table: Json, place: YamlPath) -> Condition:
        """Return a condition that holds if all entries of a table hold."""
        if not isinstance(table, dict) or not table:
            return self._wrong(place, table, f"it is a table of conditions. Known: {', '.join(KINDS)}")
        conditions: list[Condition] = []
        for name, value in table.items():
            if kind := KINDS.get(str(name)):
                conditions.append(kind(self, value, (*place, name)))
                continue
            text = f"there is no condition {short(str(name))} in {dotted(place)}{nearest(str(name), KINDS)}."
            self.faults.append(Fault(line=self.values.names.get((*place, name), 1), text=text))
            conditions.append(AllOf(of=()))
        return _all(conditions)

    def missing(self, value: Json, place: YamlPath) -> Condition:
        """Parse `missing`: at least one path has no value."""
        return _any([Missing(path=path) for path in self._paths(value, place)])

    def has(self, value: Json, place: YamlPath) -> Condition:
        """Parse `has`: all paths have values."""
        return _all([Has(path=path) for path in self._paths(value, place)])

    def equals(self, value: Json, place: YamlPath) -> Condition:
        """Parse `equals`: each path has the given value."""
        if not isinstance(value, dict) or not value:
            return self._wrong(place, value, "it is a table of paths, each with what it equals")
        return _all([Equals(path=self._path(path, (*place, path)), value=expected) for path, expected in value.items()])

    def differs(self, value: Json, place: YamlPath) -> Condition:
        """Parse `differs`: two paths have different values."""
        match self._paths(value, place):
            case [path, other]:
                return Differs(path=path, other=other)
            case _:
                return self._wrong(place, value, BOTH_PATHS)

    def all_of(self, value: Json, place: YamlPath) -> Condition:
        """Parse `all`."""
        return _all(self._several(value, place))

    def any_of(self, value: Json, place: YamlPath) -> Condition:
        """Parse `any`."""
        return _any(self._several(value, place))

    def not_so(self, value: Json, place: YamlPath) -> Condition:
        """Parse `not`."""
        return Not(of=self.condition(value, place))

    def _several(self, value: Json, place: YamlPath) -> list[Condition]:
        if not isinstance(value, list) or not value:
            return [self._wrong(place, value, "it is a list of conditions")]
        return [self.condition(item, (*place, number)) for number, item in enumerate(value)]

    def _paths(self, value: Json, place: YamlPath) -> list[str]:
        if isinstance(value, list) and value:
            return [self._path(item, (*place, number)) for number, item in enumerate(value)]
        return [self._path(value, place)]

    def _path(self, value: Json, place: YamlPath) -> str:
        if not isinstance(value, str):
            self._wrong(place, value, PATHS)
            return ""
        path = value.strip()
        if not self.needs.may_ask(path):
            own = [f"skill_data.{self.needs.skill}"] if self.needs.has_data else []
            paths = ", ".join([*self.needs.fields, *own, *PLAIN])
            self._wrong(place, value, f"conditions use only paths in profile_fields. Known: {paths}")
        return path

    def _wrong(self, place: YamlPath, value: Json, allowed: str) -> Condition:
        fault = value_fault(self.values, place, value, allowed)
        # If a name is wrong, report the line of the name, because its value may be on another line.
        line = self.values.names.get(place, fault.line)
        self.faults.append(replace(fault, line=line))
        return AllOf(of=())


ConditionKind = Callable[[_Conditions, Json, YamlPath], Condition]
KINDS: Mapping[str, ConditionKind] = {
    "missing": _Conditions.missing,
    "has": _Conditions.has,
    "equals": _Conditions.equals,
    "differs": _Conditions.differs,
    "all": _Conditions.all_of,
    "any": _Conditions.any_of,
    "not": _Conditions.not_so,
}


def _all(of: Sequence[Condition]) -> Condition:
    return of[0] if len(of) == 1 else AllOf(of=tuple(of))


def _any(of: Sequence[Condition]) -> Condition:
    return of[0] if len(of) == 1 else AnyOf(of=tuple(of))


FILE, SOP_FILE = "SKILL.md", "sop.yaml"
NO_FILE = f"there is no {FILE} in it. Write one, or begin its name with _ to leave it out; skills are one level deep."
MORE_FILES = f"it has more than {MOST_FILES} files; those after the first {MOST_FILES} are not listed to the model."


@dataclass(frozen=True, kw_only=True)
class LoadedSkills:
    """Valid skills by name, in the order of their folders, and the problems of broken skills by folder."""

    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    broken: Mapping[str, tuple[FileProblem, ...]] = field(default_factory=dict[str, tuple[FileProblem, ...]])
    warnings: tuple[FileProblem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Read:
    """Content of a skill's folder: a skill, or problems."""

    skill: Skill | None = None
    problems: tuple[FileProblem, ...] = ()
    warnings: tuple[FileProblem, ...] = ()


def load_skills(folder: Path, locale: str = "zh") -> LoadedSkills:
    """Load the skills of a folder in a language. Report errors as problems. A missing folder contains no skills."""
    try:
        folders = [
            folder / name
            for name in sorted(path.name for path in folder.iterdir() if not path.name.startswith((".", "_")))
            if _is_folder(folder / name)
        ]
    except FileNotFoundError:
        return LoadedSkills()
    except OSError as error:
        text = f"skills cannot be read from it ({error.strerror}). Make it a folder of skills, or remove it."
        return LoadedSkills(broken={folder.name: (FileProblem(file=folder, text=text),)})
    skills: dict[str, Skill] = {}
    broken: dict[str, tuple[FileProblem, ...]] = {}
    warnings: list[FileProblem] = []
    for path in folders:
        read = _load_skill(path, locale)
        if read.skill is None:
            broken[path.name] = read.problems
        elif read.skill.name in skills:
            other = skills[read.skill.name].folder.name
            text = f"another skill is named {read.skill.name} already, in {other}. Rename one of them."
            broken[path.name] = (FileProblem(file=path / FILE, text=text),)
        else:
            skills[read.skill.name] = read.skill
            warnings.extend(read.warnings)
    return LoadedSkills(skills=skills, broken=broken, warnings=tuple(warnings))


def _is_folder(path: Path) -> bool:
    """Return True if the path is a folder or unreadable. Unreadable paths are later reported as broken."""
    try:
        return path.is_dir()
    except OSError:
        return True


def _load_skill(folder: Path, locale: str) -> _Read:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        text = f"it cannot be read ({error.strerror}). Fix or remove it."
        return _Read(problems=(FileProblem(file=folder, text=text),))
    if FILE not in names:
        return _Read(problems=(FileProblem(file=folder, text=NO_FILE),))
    try:
        document = read_localized(folder, folder / FILE, FileLanguage(locale=locale, names=names), strict=False)
    except UnreadableFile as error:
        return _Read(problems=(FileProblem(file=folder / FILE, text=str(error)),))
    return _complete(folder, names, locale, document)


def _complete(folder: Path, names: list[str], locale: str, document: LocalizedFile) -> _Read:
    """Add the procedure, cases and files to a skill."""
    read = skill_of(document, folder)
    sop, sop_problems, sop_warnings = _load_sop(folder, names, locale, read.needs)
    problems = (*read.problems, *sop_problems)
    if problems:
        return _Read(problems=problems)
    try:
        case_names = [path.name for path in (folder / CASES).iterdir()] if CASES in names else []
    except OSError:
        case_names = []
    cases, case_warnings = read_cases(folder, FileLanguage(locale=locale, names=case_names))
    files = bundled_files(folder, _is_read)
    warnings = [*read.warnings, *sop_warnings, *case_warnings]
    if len(files) > MOST_FILES:
        warnings.append(FileProblem(file=folder, text=MORE_FILES))
    return _Read(skill=replace(read.skill, sop=sop, cases=cases, files=files[:MOST_FILES]), warnings=tuple(warnings))


def _load_sop(
    folder: Path, names: list[str], locale: str, needs: Needs
) -> tuple[Sop | None, tuple[FileProblem, ...], tuple[FileProblem, ...]]:
    name = FileLanguage(locale=locale, names=names).variant_of(SOP_FILE) or SOP_FILE
    if name not in names:
        return None, (), ()
    document = LocalizedFile(file=folder / name)
    try:
        sop, faults, warnings = read_sop(read_within(folder, document.file, LONGEST), needs)
    except UnreadableFile as error:
        return None, (FileProblem(file=document.file, text=str(error)),), ()
    return sop, document.problems(faults), document.problems(warnings)


def _is_read(names: tuple[str, ...]) -> bool:
    """Return True for a skill's SKILL.md, procedure and cases, in any language."""
    match = VARIANT.fullmatch(names[-1])
    name = f"{match['stem']}{match['ending']}" if match else names[-1]
    match names[:-1]:
        case ():
            return name in (FILE, SOP_FILE)
        case (folder,):
            return folder == CASES and is_case(name)
        case _:
            return False
