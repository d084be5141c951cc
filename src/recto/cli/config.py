"""The `[fold]` table of a TOML file: checked here, because it comes from outside."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recto.errors import SettingsError
from recto.page import AgeRule, FoldSettings, Project, ReadRule
from recto.page.folding import SEARCH, TERMINAL

# A hundred years: no session is older.
LONGEST_MINUTES = 60 * 24 * 365 * 100
Names = Annotated[list[str], Field(min_length=1)]
Step = Annotated[list[int], Field(min_length=2, max_length=2)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Reads(_Table):
    """`[fold.reads]`: reads of files."""

    on: bool = True
    tools: Names | None = None
    path_args: Names | None = None
    keep: Annotated[int, Field(ge=1)] | None = None
    keep_by_size: list[Step] | None = None
    placeholder: str | None = None


class ByAge(_Table):
    """`[fold.terminal]` and `[fold.search]`: results that go stale with time."""

    on: bool = True
    tools: Names | None = None
    keep: Annotated[int, Field(ge=0)] | None = None
    minutes: Annotated[float, Field(ge=0, le=LONGEST_MINUTES, allow_inf_nan=False)] | None = None
    placeholder: str | None = None


class Fold(_Table):
    """`[fold]`: everything `recto fold` can be told."""

    root: str | None = None
    case_sensitive: bool | None = None
    reads: Reads | None = None
    terminal: ByAge | None = None
    search: ByAge | None = None


class _File(BaseModel):
    """A whole file: other tables belong to other commands."""

    fold: Fold = Fold()


def load_config(path: Path) -> Fold:
    """The `[fold]` table of a file. What is unreadable or unknown raises SettingsError."""
    try:
        return _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).fold
    except OSError as error:
        raise SettingsError(
            name="--config", value=str(path), allowed=f"it cannot be read ({error.strerror})"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(step) for step in first["loc"])
        raise SettingsError(name=name, value=first["input"], allowed=first["msg"].lower()) from error
    except ValueError as error:
        raise SettingsError(name="--config", value=str(path), allowed=f"it is no TOML ({error})") from error


def with_config(settings: FoldSettings, fold: Fold) -> FoldSettings:
    """The settings with those of a `[fold]` table over them."""
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
