"""Settings of folding (R11): which rules are on, each as it is set, where paths start, what placeholders end with."""

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
# It says nothing of which result it was: a number counted from the newest changes with every new one, and with it the
# bytes of old messages, which would break the prompt prefix each time.
RECALL_HINT = {"zh": "（可用 recall 取回原文）", "en": " (the recall tool gets it back)"}


@dataclass(frozen=True, init=False)
class FoldSettings:
    """What folding does: `rules` are those that are on, in the order they are applied.

    Over them each is given under its name, and None switches it off: `FoldSettings(reads=None, search=SEARCH)`.
    With `recall_hint`, placeholders of who has the tool `recall` say so. With `cost`, the rules say what tools there
    are, and results are folded in steps that save money (X2); without it, whenever a rule says so.
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
        """The same, with relative paths that start at another place."""
        return replace(self, project=replace(self.project, root=root))

    def rule(self, name: str) -> FoldRule | None:
        """A rule as it is set; None where it is off."""
        return next((rule for rule in self.rules if rule.name == name), None)


def with_recall_hint(settings: FoldSettings, locale: str) -> FoldSettings:
    """The settings of who has the tool `recall`: where they want it, each placeholder ends by saying so."""
    if not settings.recall_hint:
        return settings
    hint = RECALL_HINT[language(locale)]
    rules = tuple([replace(rule, placeholder=rule.placeholder + hint) for rule in settings.rules])
    return replace(settings, rules=rules)


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldKey:
    """Settings and a counter as one thing that is cheap to look things up by; equal ones are the same one."""

    settings: FoldSettings
    counter: TokenCounter
    tools: frozenset[str]


# Threads that read files have settings of their own: where their paths start.
@lru_cache(maxsize=1_024)
def fold_key(settings: FoldSettings, counter: TokenCounter) -> FoldKey:
    """The key of these settings and this counter."""
    tools = frozenset(tool for rule in settings.rules for tool in rule.tools)
    return FoldKey(settings=settings, counter=counter, tools=tools)
