"""Settings of folding as people write them, in `AGENT.md` and in the `[fold]` table of a TOML file: checked here."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from recto.config.checked import Table
from recto.page.fold.fold_settings import SEARCH, TERMINAL, AgeRule, FoldSettings, ReadRule
from recto.page.fold.paths import Project

# A hundred years: no session is older.
LONGEST_MINUTES = 60 * 24 * 365 * 100
ToolNames = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


def on_or_off(value: object) -> object:
    """What is only switched on or off need not be a table."""
    return {"on": value} if isinstance(value, bool) else value


def _keeps_some(step: list[int]) -> list[int]:
    if step[1] < 1:
        raise ValueError("at least 1 read of a file must stay")
    return step


AgeStep = Annotated[list[int], Field(min_length=2, max_length=2), AfterValidator(_keeps_some)]


class Reads(Table):
    """`fold.reads`: reads of files."""

    on: bool = True
    tools: ToolNames | None = None
    path_args: ToolNames | None = None
    keep: Annotated[int, Field(ge=1)] | None = None
    keep_by_size: list[AgeStep] | None = None
    placeholder: str | None = None


class ByAge(Table):
    """`fold.terminal` and `fold.search`: results that go stale with time."""

    on: bool = True
    tools: ToolNames | None = None
    keep: Annotated[int, Field(ge=0)] | None = None
    minutes: Annotated[float, Field(ge=0, le=LONGEST_MINUTES, allow_inf_nan=False)] | None = None
    placeholder: str | None = None


class Fold(Table):
    """Everything folding can be told."""

    root: str | None = None
    case_sensitive: bool | None = None
    reads: Annotated[Reads | None, BeforeValidator(on_or_off)] = None
    terminal: Annotated[ByAge | None, BeforeValidator(on_or_off)] = None
    search: Annotated[ByAge | None, BeforeValidator(on_or_off)] = None


def with_table(settings: FoldSettings, fold: Fold) -> FoldSettings:
    """The settings with those of a table over them."""
    case = settings.project.case_sensitive if fold.case_sensitive is None else fold.case_sensitive
    return FoldSettings(
        reads=_reads(settings.reads, fold.reads),
        terminal=_by_age(settings.terminal, fold.terminal, TERMINAL),
        search=_by_age(settings.search, fold.search, SEARCH),
        project=Project(root=settings.project.root if fold.root is None else fold.root, case_sensitive=case),
    )


def _reads(rule: ReadRule | None, table: Reads | None) -> ReadRule | None:
    if table is None or not table.on:
        return None if table else rule
    rule = rule or ReadRule()
    return ReadRule(
        tools=tuple(table.tools or rule.tools),
        path_args=tuple(table.path_args or rule.path_args),
        keep=table.keep or rule.keep,
        keep_by_size=tuple((size, keep) for size, keep in table.keep_by_size or rule.keep_by_size),
        placeholder=rule.placeholder if table.placeholder is None else table.placeholder,
    )


def _by_age(rule: AgeRule | None, table: ByAge | None, default: AgeRule) -> AgeRule | None:
    if table is None or not table.on:
        return None if table else rule
    rule = rule or default
    return AgeRule(
        tools=tuple(table.tools or rule.tools),
        keep=rule.keep if table.keep is None else table.keep,
        max_age=rule.max_age if table.minutes is None else timedelta(minutes=table.minutes),
        placeholder=rule.placeholder if table.placeholder is None else table.placeholder,
    )
