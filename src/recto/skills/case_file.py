"""`cases/*.md` (S8): worked examples of a skill. Refuses to let a broken one keep the others, or the skill, away."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from recto.config.checked import Form, Table, check, told
from recto.config.problem import Fault, Problem
from recto.page.prompt import Case
from recto.skills.cases import CaseIndex, TaggedCase, index_cases
from recto.skills.within import Unreadable
from recto.skills.written import VARIANT, Language, Written, read_written

CASES = "cases"
ENDING = ".md"
LEFT_OUT = "The case is left out."
NO_CONTENT = "it says nothing below its settings. Write the case there."
NO_TAGS = "it has no tags, so no user's data leads to it. Give it `tags: [...]`."


def _full(value: str) -> str:
    if not value.strip():
        raise ValueError("it is not empty")
    return value.strip()


Word = Annotated[str, AfterValidator(_full)]


class CaseTable(Table):
    """Every setting of a case."""

    id: Word | None = None
    name: Word | None = None
    tags: list[Word] = Field(default_factory=list[str])
    rule_ids: list[Word] = Field(default_factory=list[str])


FORM = Form(root=CaseTable)


class ReadCases(NamedTuple):
    """The cases of a skill, and what is said of those that were left out."""

    cases: CaseIndex
    warnings: tuple[Problem, ...] = ()


def read_cases(folder: Path, language: Language) -> ReadCases:
    """The cases of a skill's folder, in the order of their files. `language` has what there is in `cases`."""
    found: dict[str, TaggedCase] = {}
    warnings: list[Problem] = []
    for name in _files(language):
        case, problems = _read_case(folder, name, language, found)
        found |= {case.case.id: case} if case else {}
        warnings.extend(problems)
    return ReadCases(index_cases(tuple(found.values())), tuple(warnings))


def is_case(name: str) -> bool:
    """Whether a file in `cases` is a case, or the variant of one."""
    return name.endswith(ENDING) and not name.startswith(".")


def _files(language: Language) -> list[str]:
    """The files of cases. One that there is for this language only is a case there, and none elsewhere."""
    names = sorted(filter(is_case, language.names))
    variants = [match for name in names if (match := VARIANT.fullmatch(name))]
    others = {
        match.string
        for match in variants
        if match["locale"] != language.locale or f"{match['stem']}{ENDING}" in language.names
    }
    return [name for name in names if name not in others]


def _read_case(
    folder: Path, name: str, language: Language, taken: Collection[str]
) -> tuple[TaggedCase | None, tuple[Problem, ...]]:
    """A case, or why it is left out."""
    file = folder / CASES / name
    try:
        written = read_written(folder, file, language, lenient=False)
    except Unreadable as error:
        return None, (Problem(file=file, line=None, text=f"{error} {LEFT_OUT}"),)
    table, faults = check(written.settings, FORM)
    match = VARIANT.fullmatch(name)
    case = _case(written, table, match["stem"] if match else file.stem)
    faults = (*faults, *_further(written, case, taken))
    if faults:
        return None, written.problems([Fault(line=fault.line, text=f"{fault.text} {LEFT_OUT}") for fault in faults])
    return case, () if case.tags else written.problems([Fault(line=written.end_line, text=NO_TAGS)])


def _further(written: Written, case: TaggedCase, taken: Collection[str]) -> Iterator[Fault]:
    """What the settings alone do not tell. Of a file that could not be read all is told."""
    if written.settings.faults:
        return
    if not written.body:
        yield Fault(line=written.end_line, text=NO_CONTENT)
    if case.case.id in taken:
        yield told(written.settings, ("id",), case.case.id, "another case has that id already")


def _case(written: Written, table: CaseTable, stem: str) -> TaggedCase:
    id = table.id or stem
    return TaggedCase(
        case=Case(id=id, name=table.name or id, content=written.body),
        tags=tuple(dict.fromkeys(table.tags)),
        rule_ids=tuple(dict.fromkeys(table.rule_ids)),
    )
