"""Schema of fold settings in `AGENT.md` and in the `[fold]` table of a TOML file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Literal, TypeVar, cast

from pydantic import AfterValidator, BeforeValidator, Field, create_model

from recto.config.table_check import Table
from recto.page.fold.fold_settings import CostSettings, FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import RULES, FoldRule

# Maximum age: a hundred years. No session is older.
LONGEST_MINUTES = 60 * 24 * 365 * 100
ToolNames = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
TableT = TypeVar("TableT", bound=Table)
NumberOf = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Minutes = Annotated[float, Field(ge=0, le=LONGEST_MINUTES, allow_inf_nan=False)]


def on_or_off(value: object) -> object:
    """Convert a boolean to a table that contains only `on`."""
    return {"on": value} if isinstance(value, bool) else value


def _keeps_some(step: list[int]) -> list[int]:
    if step[1] < 1:
        raise ValueError("at least 1 read of a file must stay")
    return step


SizeStep = Annotated[list[int], Field(min_length=2, max_length=2), AfterValidator(_keeps_some)]


class RuleTable(Table):
    """Settings of every rule, such as `fold.reads`."""

    on: bool = True
    tools: ToolNames | None = None
    placeholder: str | None = None


class CostTable(Table):
    """Settings of `fold.cost`. `CostSettings` explains them."""

    window: NumberOf | None = None
    edited_window: NumberOf | None = None
    read_window: NumberOf | None = None
    turn_calls: NumberOf | None = None
    quoting_edits: NumberOf | None = None
    touched_share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    least_result: NumberOf | None = None
    least_page: NumberOf | None = None
    least_step: NumberOf | None = None
    horizon: Share | None = None
    payback: Share | None = None
    cache_minutes: Minutes | None = None
    edits: ToolNames | None = None
    quotes: ToolNames | None = None
    parts: ToolNames | None = None
    more: list[Annotated[str, Field(min_length=1)]] | None = None
    placeholder: Annotated[str, Field(min_length=1)] | None = None


class FoldTable(Table):
    """Settings of `fold` besides the rules."""

    mode: Literal["eager", "cost"] | None = None
    cost: CostTable = CostTable()
    root: str | None = None
    case_sensitive: bool | None = None
    recall_hint: bool | None = None


def rule_table(rule: FoldRule) -> type[RuleTable]:
    """Return the table of one rule, with settings for files and age if it uses them."""
    settings: dict[str, object] = {"keep": Annotated[int, Field(ge=rule.least_keep)]}
    if rule.path_args:
        settings |= {"path_args": ToolNames, "keep_by_size": list[SizeStep]}
    if rule.max_age is not None:
        settings |= {"minutes": Minutes}
    return _extended(rule.name.title(), RuleTable, settings)


def fold_table(rules: Sequence[FoldRule]) -> type[FoldTable]:
    """Return the table of `fold` with a table for each rule."""
    tables = {rule.name: Annotated[rule_table(rule), BeforeValidator(on_or_off)] for rule in rules}
    return _extended("Fold", FoldTable, tables)


def _extended(name: str, base: type[TableT], settings: Mapping[str, object]) -> type[TableT]:
    # The overloads of create_model do not cover fields whose types are known only at run time.
    make = cast("Callable[..., type[TableT]]", create_model)
    return make(name, __base__=base, **{setting: (hint, None) for setting, hint in settings.items()})


class Fold(fold_table(RULES)):
    """Settings of `fold`."""


def with_table(settings: FoldSettings, fold: FoldTable, rules: Sequence[FoldRule] = RULES) -> FoldSettings:
    """Return the settings, overridden by the values of a table."""
    case = settings.project.case_sensitive if fold.case_sensitive is None else fold.case_sensitive
    project = Project(root=settings.project.root if fold.root is None else fold.root, case_sensitive=case)
    tables = [(rule, table) for rule in rules if (table := cast("RuleTable | None", getattr(fold, rule.name)))]
    changed: dict[str, FoldRule | None] = {}
    for rule, table in tables:
        old_rule = settings.rule(rule.name)
        fields = cast("dict[str, object]", table.model_dump(exclude_none=True))
        if not fields.pop("on"):
            changed |= {rule.name: None} if old_rule else {}
            continue
        if "minutes" in fields:
            fields["max_age"] = timedelta(minutes=cast("float", fields.pop("minutes")))
        changed[rule.name] = replace(old_rule or rule, **{name: frozen(value) for name, value in fields.items()})
    hint = settings.recall_hint if fold.recall_hint is None else fold.recall_hint
    # Fold by cost if the table requests that, or if the given settings do and the table sets no mode.
    mode = fold.mode or ("cost" if settings.cost else "eager")
    fields = cast("dict[str, object]", fold.cost.model_dump(exclude_none=True))
    changes = {name: frozen(value) for name, value in fields.items()}
    cost = replace(settings.cost or CostSettings(), **changes) if mode == "cost" else None
    return FoldSettings(rules=settings.rules, project=project, recall_hint=hint, cost=cost, **changed)


def frozen(value: object) -> object:
    """Convert lists to tuples."""
    return tuple(map(frozen, cast("list[object]", value))) if isinstance(value, list) else value
