"""Cases (S8): worked examples, found by an inverted index over what is known of the user. Same index, same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recto.page.prompt import Case


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
    by_rule: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])


NO_CASES = CaseIndex()
