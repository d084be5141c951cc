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
# The hint omits the number of the result. The number changes with every new result, and a changed placeholder would
# break the prompt prefix.
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
    """Return the settings for an agent with the `recall` tool: if enabled, each placeholder ends with the hint."""
    if not settings.recall_hint:
        return settings
    hint = RECALL_HINT[language(locale)]
    rules = tuple([replace(rule, placeholder=rule.placeholder + hint) for rule in settings.rules])
    return replace(settings, rules=rules)


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldKey:
    """Settings and a counter as a cache key.

    `fold_key` returns the same object for equal arguments, so keys are compared by identity.
    """

    settings: FoldSettings
    counter: TokenCounter
    tools: frozenset[str]


# Many entries, because each thread that reads files has settings with its own project root.
@lru_cache(maxsize=1_024)
def fold_key(settings: FoldSettings, counter: TokenCounter) -> FoldKey:
    """Return the key of these settings and this counter."""
    tools = frozenset(tool for rule in settings.rules for tool in rule.tools)
    return FoldKey(settings=settings, counter=counter, tools=tools)


RULE = "X2"
# True for any result, with or without a newer one.
PLACEHOLDER: Mapping[str, str] = {"zh": "[旧结果，已移出上下文]", "en": "[An old result, taken out of view]"}
PLACEHOLDER_WITH_RECALL: Mapping[str, str] = {
    "zh": "[旧结果，已移出上下文；可用 recall 取回]",
    "en": "[An old result, taken out of view; the recall tool gets it back]",
}


class CachePrices(NamedTuple):
    """Prices of a million prompt tokens read from and written to the provider's cache.

    Both are equal if the provider has no cache. If `is_listed` is False, no price is known: the values are shares of
    the input price, and reports contain no amounts of money.
    """

    read: float
    write: float
    is_listed: bool = True

    @property
    def is_cached(self) -> bool:
        """True if reading a prefix from the cache costs less than writing it."""
        return self.read < self.write


# Shares of the input price that caching providers charge, for models with unknown prices.
USUAL_PRICES = CachePrices(read=0.1, write=1.25, is_listed=False)


@dataclass(frozen=True, kw_only=True)
class CostSettings:
    """Thresholds of folding by cost. Windows are counted in model calls.

    A result may be folded once it was unused for longer than its window: `window` for commands, searches, edits and
    errors, `edited_window` for a read of a file that was edited and read again since, `read_window` for any other read.
    A user message counts as the calls of an average turn, at most `turn_calls`. Reads have the window of commands once
    there are `quoting_edits` edits that quote a result, if the share `touched_share` of these came within `window` of a
    use of their file. Results under `least_result` tokens and pages under `least_page` tokens are not folded.

    A step frees at least `least_step` tokens. Its benefit is computed for `horizon` times the calls made so far, and it
    must pay for itself within `payback` times these calls. A prefix unused for `cache_minutes` counts as not cached.

    `edits` are the tools that change files, `quotes` their arguments with the replaced text, `parts` the arguments of a
    read that select a part of a file. `more` are other tools whose results have the window of commands.
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
