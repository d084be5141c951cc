"""Settings of folding (R11): active rules, project root and recall hint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from recto.conversation.locale import language
from recto.errors import SettingsError
from recto.page.fold.cost_settings import CostSettings
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
        **named: FoldRule | None,
    ) -> None:
        known = {rule.name for rule in (*RULES, *rules)}
        for name, rule in named.items():
            if rule is None and name not in known:
                raise SettingsError(name="fold", value=name, allowed=f"the rules are {', '.join(sorted(known))}")
            if rule is not None and rule.name != name:
                raise SettingsError(name=f"fold.{name}", value=rule.name, allowed="a rule is given under its own name")
        set_to = {**{rule.name: rule for rule in rules}, **named}
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
