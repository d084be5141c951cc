"""Cases (S8): worked examples, found by an inverted index over what is known of the user. Same index, same order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from recto.page.prompt import Case

BEST = 2
LINKED = 2


@dataclass(frozen=True, kw_only=True)
class TaggedCase:
    """A case, what it is tagged with, and the rules it is linked to."""

    case: Case
    tags: tuple[str, ...] = ()
    rule_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CaseIndex:
    """Cases in their order, and the places of those that have a tag, or are linked to a rule."""

    cases: tuple[TaggedCase, ...] = ()
    by_tag: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    by_rule: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])


NO_CASES = CaseIndex()


@dataclass(frozen=True, kw_only=True)
class ScoredCase:
    """A case that was found: its score, the values that are its tags, and the rules it is linked to."""

    case: Case
    score: int
    matched: tuple[str, ...]
    rules: tuple[str, ...] = ()


def index_cases(cases: Sequence[TaggedCase]) -> CaseIndex:
    """The cases, to be found by tag and by rule. Their order decides between equals."""
    by_tag: defaultdict[str, list[int]] = defaultdict(list)
    by_rule: defaultdict[str, list[int]] = defaultdict(list)
    for place, tagged in enumerate(cases):
        for tag in dict.fromkeys([_spelled(tag) for tag in tagged.tags if tag.strip()]):
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
    """The best cases for these values: a point for each that is a tag, two more for a link to one of the rules.

    A link alone finds nothing. Only cases that have one of the values are looked at.
    """
    matched: defaultdict[int, list[str]] = defaultdict(list)
    for spelled, value in _distinct(values).items():
        for place in index.by_tag.get(spelled, ()):
            matched[place].append(value)
    rules = {
        place: tuple(rule for rule in dict.fromkeys(rule_ids) if place in index.by_rule.get(rule, ()))
        for place in matched
    }
    scores = {place: len(found) + (LINKED if rules[place] else 0) for place, found in matched.items()}
    best = nsmallest(count, matched, key=lambda place: (-scores[place], place))
    return tuple(
        ScoredCase(
            case=index.cases[place].case,
            score=scores[place],
            matched=tuple(matched[place]),
            rules=rules[place],
        )
        for place in best
    )


def _distinct(values: Iterable[str]) -> dict[str, str]:
    """The values by how they compare, each as it was first spelled."""
    distinct: dict[str, str] = {}
    for value in values:
        distinct.setdefault(_spelled(value), value.strip())
    return distinct


def _spelled(text: str) -> str:
    return text.strip().casefold()
