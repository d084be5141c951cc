"""Settings of folding (R11): which rules are on, each as it is set, and where paths start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from recto.errors import SettingsError
from recto.page.fold.paths import Project
from recto.page.fold.rules import RULES, FoldRule
from recto.page.text.tokens import TokenCounter

ON = tuple(rule for rule in RULES if rule.on)
HERE = Project()


@dataclass(frozen=True, init=False)
class FoldSettings:
    """What folding does: `rules` are those that are on, in the order they are applied.

    Over them each is given under its name, and None switches it off: `FoldSettings(reads=None, search=SEARCH)`.
    """

    rules: tuple[FoldRule, ...]
    project: Project

    def __init__(self, *, rules: tuple[FoldRule, ...] = ON, project: Project = HERE, **named: FoldRule | None) -> None:
        known = {rule.name for rule in (*RULES, *rules)}
        for name, rule in named.items():
            if rule is None and name not in known:
                raise SettingsError(name="fold", value=name, allowed=f"the rules are {', '.join(sorted(known))}")
            if rule is not None and rule.name != name:
                raise SettingsError(name=f"fold.{name}", value=rule.name, allowed="a rule is given under its own name")
        set_to = {**{rule.name: rule for rule in rules}, **named}
        object.__setattr__(self, "rules", tuple(rule for rule in set_to.values() if rule))
        object.__setattr__(self, "project", project)

    def rule(self, name: str) -> FoldRule | None:
        """A rule as it is set; None where it is off."""
        return next((rule for rule in self.rules if rule.name == name), None)


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldKey:
    """Settings and a counter as one thing that is cheap to look things up by; equal ones are the same one."""

    settings: FoldSettings
    counter: TokenCounter
    tools: frozenset[str]


@lru_cache(maxsize=64)
def fold_key(settings: FoldSettings, counter: TokenCounter) -> FoldKey:
    """The key of these settings and this counter."""
    tools = frozenset(tool for rule in settings.rules for tool in rule.tools)
    return FoldKey(settings=settings, counter=counter, tools=tools)
