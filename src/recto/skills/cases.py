"""Cases of a skill (S8): worked examples in its folder `cases`, selected by the user's data.

An inverted index over their tags selects the cases. The same data always gives the same order. Invalid cases are
omitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from recto.config.problem import Fault, FileProblem
from recto.config.table_check import Table, TableForm, Word, check, value_fault
from recto.page.prompt.system_prompt import Case
from recto.skills.localized import VARIANT, FileLanguage, read_localized
from recto.skills.safe_path import UnreadableFile

CASES = "cases"
ENDING = ".md"
# Maximum number of cases shown, and the points for a link to a rule of the scenario. A matching tag scores one point.
BEST, LINKED = 2, 2
LEFT_OUT = "The case is left out."
NO_CONTENT = "it has no text below its settings. Write the case there."
NO_TAGS = "it has no tags, so no user's data selects it. Add `tags: [...]`."


@dataclass(frozen=True, kw_only=True)
class TaggedCase:
    """A case with its tags and the rules to which it is linked."""

    case: Case
    tags: tuple[str, ...] = ()
    rule_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CaseIndex:
    """Cases in order, and their positions by tag and by rule."""

    cases: tuple[TaggedCase, ...] = ()
    by_tag: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    by_rule: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])


NO_CASES = CaseIndex()


@dataclass(frozen=True, kw_only=True)
class ScoredCase:
    """A selected case: its score, the matching values, and the scenario's rules to which it is linked."""

    case: Case
    score: int
    matched: tuple[str, ...]
    rules: tuple[str, ...] = ()


def index_cases(cases: Sequence[TaggedCase]) -> CaseIndex:
    """Index cases by tag and by rule. The order of the cases breaks ties."""
    by_tag: defaultdict[str, list[int]] = defaultdict(list)
    by_rule: defaultdict[str, list[int]] = defaultdict(list)
    for place, tagged in enumerate(cases):
        for tag in dict.fromkeys([_normalise(tag) for tag in tagged.tags if tag.strip()]):
            by_tag[tag].append(place)
        for rule in tagged.rule_ids:
            by_rule[rule].append(place)
    return CaseIndex(
        cases=tuple(cases),
        by_tag={tag: tuple(places) for tag, places in by_tag.items()},
        by_rule={rule: frozenset(places) for rule, places in by_rule.items()},
    )


def best_cases(
    index: CaseIndex, values: Iterable[str], rule_ids: Sequence[str], count: int = BEST
) -> tuple[ScoredCase, ...]:
    """Return the best cases for these values.

    Each value that is a tag scores one point; a link to a rule scores two more. A case that has only a link is not
    selected.
    """
    matched: defaultdict[int, list[str]] = defaultdict(list)
    distinct: dict[str, str] = {}
    for value in values:
        distinct.setdefault(_normalise(value), value.strip())
    for key, value in distinct.items():
        for place in index.by_tag.get(key, ()):
            matched[place].append(value)
    rules = {
        place: tuple(rule for rule in dict.fromkeys(rule_ids) if place in index.by_rule.get(rule, ()))
        for place in matched
    }
    scores = {place: len(tags) + (LINKED if rules[place] else 0) for place, tags in matched.items()}
    best = nsmallest(count, matched, key=lambda place: (-scores[place], place))
    return tuple(
        ScoredCase(case=index.cases[place].case, score=scores[place], matched=tuple(matched[place]), rules=rules[place])
        for place in best
    )


def _normalise(text: str) -> str:
    return text.strip().casefold()


class CaseTable(Table):
    """Settings of a case."""

    id: Word | None = None
    name: Word | None = None
    tags: list[Word] = Field(default_factory=list[str])
    rule_ids: list[Word] = Field(default_factory=list[str])


FORM = TableForm(root=CaseTable)


class ReadCases(NamedTuple):
    """The cases of a skill, and warnings about omitted cases."""

    cases: CaseIndex
    warnings: tuple[FileProblem, ...] = ()


def read_cases(folder: Path, language: FileLanguage) -> ReadCases:
    """Read the cases of a skill's folder in file order. `language` contains the file names of the folder `cases`."""
    cases: dict[str, TaggedCase] = {}
    warnings: list[FileProblem] = []
    # A case that exists only as variants is a case only in the languages of its variants.
    names = sorted(filter(is_case, language.names))
    variants = [match for name in names if (match := VARIANT.fullmatch(name))]
    others = {
        match.string
        for match in variants
        if match["locale"] != language.locale or f"{match['stem']}{ENDING}" in language.names
    }
    for name in [name for name in names if name not in others]:
        case, problems = _read_case(folder, name, language, cases)
        cases |= {case.case.id: case} if case else {}
        warnings.extend(problems)
    return ReadCases(index_cases(tuple(cases.values())), tuple(warnings))


def is_case(name: str) -> bool:
    """Return True if a file in `cases` is a case or a variant of a case."""
    return name.endswith(ENDING) and not name.startswith(".")


def _read_case(
    folder: Path, name: str, language: FileLanguage, ids: Collection[str]
) -> tuple[TaggedCase | None, tuple[FileProblem, ...]]:
    """Return a case, or the problems why it is omitted."""
    file = folder / CASES / name
    try:
        document = read_localized(folder, file, language, strict=True)
    except UnreadableFile as error:
        return None, (FileProblem(file=file, text=f"{error} {LEFT_OUT}"),)
    table, faults = check(document.settings, FORM)
    match = VARIANT.fullmatch(name)
    id = table.id or (match["stem"] if match else file.stem)
    case = TaggedCase(
        case=Case(id=id, name=table.name or id, content=document.body),
        tags=tuple(dict.fromkeys(table.tags)),
        rule_ids=tuple(dict.fromkeys(table.rule_ids)),
    )
    # Unreadable settings have already been reported as faults.
    if not document.settings.faults:
        if not document.body:
            faults = (*faults, Fault(line=document.end_line, text=NO_CONTENT))
        if id in ids:
            faults = (*faults, value_fault(document.settings, ("id",), id, "another case has that id already"))
    if faults:
        return None, document.problems([Fault(line=fault.line, text=f"{fault.text} {LEFT_OUT}") for fault in faults])
    return case, () if case.tags else document.problems([Fault(line=document.end_line, text=NO_TAGS)])
