"""Settings of folding (R11): active rules, project root and recall hint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from recto.conversation.locale import language
from recto.errors import SettingsError
from recto.page.fold.paths import Project
from recto.page.fold.rules import RULES, FoldRule
from recto.page.text.tokens import TokenCounter

ON = tuple(rule for rule in RULES if rule.on)
HERE = Project()
RECALL = "recall"
# The hint has no result number: that changes with every new result, and changed bytes of old messages would break the
# prompt prefix each time.
RECALL_HINT = {"zh": "（可用 recall 取回原文）", "en": " (the recall tool gets it back)"}


@dataclass(frozen=True, init=False)
class FoldSettings:
    """Settings of folding: `rules` are the active ones, in the order they are applied.

    A rule passed under its name replaces the default; None switches it off: `FoldSettings(reads=None, search=SEARCH)`.
    With `recall_hint`, placeholders mention the `recall` tool. With `cost`, results are folded in steps that save money
    (X2), and the rules only name the tools; without it, each rule folds at once.
    """

    rules: tuple[FoldRule, ...]
    project: Project
    recall_hint: bool
    cost: CostSettings | None

    def __init__(
        self,
        *,
        rules: tuple[FoldRule, ...] = ON,
        project: Project = HERE,
        recall_hint: bool = False,
        cost: CostSettings | None = None,
        **rules_by_name: FoldRule | None,
    ) -> None:
        rule_names = {rule.name for rule in (*RULES, *rules)}
        for name, rule in rules_by_name.items():
            if rule is None and name not in rule_names:
                raise SettingsError(name="fold", value=name, allowed=f"the rules are {', '.join(sorted(rule_names))}")
            if rule is not None and rule.name != name:
                raise SettingsError(name=f"fold.{name}", value=rule.name, allowed="a rule is given under its own name")
        set_to = {**{rule.name: rule for rule in rules}, **rules_by_name}
        object.__setattr__(self, "rules", tuple(rule for rule in set_to.values() if rule))
        object.__setattr__(self, "project", project)
        object.__setattr__(self, "recall_hint", recall_hint)
        object.__setattr__(self, "cost", cost)

    def rooted_at(self, root: str) -> FoldSettings:
        """Return the settings with another project root."""
        return replace(self, project=replace(self.project, root=root))

    def rule(self, name: str) -> FoldRule | None:
        """Return an active rule by name, or None."""
        return next((rule for rule in self.rules if rule.name == name), None)


def with_recall_hint(settings: FoldSettings, locale: str) -> FoldSettings:
    """Return the settings for an agent with the `recall` tool, with its hint in each placeholder if enabled."""
    if not settings.recall_hint:
        return settings
    hint = RECALL_HINT[language(locale)]
    rules = tuple([replace(rule, placeholder=rule.placeholder + hint) for rule in settings.rules])
    return replace(settings, rules=rules)


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldKey:
    """Settings and a counter as one cheap cache key; equal ones are the same object."""

    settings: FoldSettings
    counter: TokenCounter
    tools: frozenset[str]


# Threads that read files have their own settings because of the project root.
@lru_cache(maxsize=1_024)
def fold_key(settings: FoldSettings, counter: TokenCounter) -> FoldKey:
    """Return the key of these settings and this counter."""
    tools = frozenset(tool for rule in settings.rules for tool in rule.tools)
    return FoldKey(settings=settings, counter=counter, tools=tools)


RULE = "X2"
# Valid for any result, with or without a newer one.
PLACEHOLDER: Mapping[str, str] = {"zh": "[旧结果，已移出上下文]", "en": "[An old result, taken out of view]"}
PLACEHOLDER_WITH_RECALL: Mapping[str, str] = {
    "zh": "[旧结果，已移出上下文；可用 recall 取回]",
    "en": "[An old result, taken out of view; the recall tool gets it back]",
}


class CachePrices(NamedTuple):
    """Prices of a million prompt tokens read from and written to the provider's cache.

    They are equal if the provider has no cache. If no list has them they are shares, and no money is reported.
    """

    read: float
    write: float
    is_listed: bool = True

    @property
    def is_cached(self) -> bool:
        """True if an unchanged prefix costs less."""
        return self.read < self.write


# Shares of the input price that caching providers charge, for models with unknown prices.
USUAL_PRICES = CachePrices(read=0.1, write=1.25, is_listed=False)


@dataclass(frozen=True, kw_only=True)
class CostSettings:
    """Thresholds of folding by cost. Windows are counted in model calls.

    A result is spent when it was unused for longer than its window: `window` for commands, searches, edits and errors,
    `edited_window` for a read of a file edited since, `read_window` for any other read. A user message ages it by an
    average turn, at most `turn_calls`. After `quoting_edits` of which `touched_share` came within `window` of touching
    their file, reads have the window of commands. Results under `least_result` tokens and pages under `least_page`
    stay.

    A step frees at least `least_step` tokens, is weighed over `horizon` times the calls made so far, and pays for
    itself within `payback` times these. A prefix unused for `cache_minutes` is in no cache.

    `edits` are the tools that change files, `quotes` their arguments with the replaced text, `parts` the arguments of a
    read that select a part of a file; `more` are other tools whose results have the window of commands.
    """

    window: int = 8
    edited_window: int = 40
    read_window: int = 200
    turn_calls: int = 20
    quoting_edits: int = 10
    touched_share: float = 0.9
    least_result: int = 30
    least_page: int = 30_000
    least_step: int = 2_000
    horizon: float = 0.5
    payback: float = 0.2
    cache_minutes: float = 5.0
    edits: tuple[str, ...] = ("filesystem-edit", "filesystem-create")
    quotes: tuple[str, ...] = ("searchContent", "search", "oldText", "old_string", "oldString", "old_str", "patch")
    parts: tuple[str, ...] = ("startLine", "endLine", "start_line", "end_line", "offset", "limit", "view_range")
    more: tuple[str, ...] = ("terminal-jobs", "recall")
    placeholder: str = PLACEHOLDER["zh"]

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, int | float) and value < 0:
                raise SettingsError(name=f"fold.cost.{name}", value=value, allowed="it is 0 or more")
        if self.touched_share > 1:
            raise SettingsError(name="fold.cost.touched_share", value=self.touched_share, allowed="it is at most 1")
        if not self.placeholder.strip():
            raise SettingsError(name="fold.cost.placeholder", value=self.placeholder, allowed="it says something")


def placeholder_in(locale: str, *, has_recall: bool) -> str:
    """Return the placeholder of a folded result in the agent's language. It mentions `recall` if the agent has it."""
    return (PLACEHOLDER_WITH_RECALL if has_recall else PLACEHOLDER)[language(locale)]
