"""Settings of one `recto fold`: names of the session's own tools, a TOML file over them, the command line over all."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from recto.agents.fold_table import Fold
from recto.cli.fold.sessions.session import Session
from recto.errors import SettingsError
from recto.page.fold.fold_settings import SEARCH, TERMINAL, FoldSettings, ReadRule
from recto.page.fold.paths import Project


@dataclass(frozen=True, kw_only=True)
class FoldOptions:
    """What the command line asks for; None and empty say nothing."""

    root: str | None = None
    keep: int | None = None
    read_tools: tuple[str, ...] = ()
    path_args: tuple[str, ...] = ()
    terminal_tools: tuple[str, ...] = ()
    search_tools: tuple[str, ...] = ()
    search: bool = False


def settings_of(session: Session) -> FoldSettings:
    """Defaults, with the names this session's agent has for its tools."""
    tools, reads = session.tools, ReadRule()
    if tools.reads:
        reads = replace(reads, tools=tools.reads, path_args=tools.path_args or reads.path_args)
    terminal = replace(TERMINAL, tools=tools.terminal) if tools.terminal else TERMINAL
    return FoldSettings(reads=reads, terminal=terminal, project=Project(root=session.root))


def with_options(settings: FoldSettings, asked: FoldOptions, session: Session) -> FoldSettings:
    """The settings with those of the command line over them."""
    terminal, search, project = settings.terminal, settings.search, settings.project
    if asked.terminal_tools:
        terminal = replace(terminal or TERMINAL, tools=asked.terminal_tools)
    if asked.search or asked.search_tools:
        known = search or replace(SEARCH, tools=session.tools.search or SEARCH.tools)
        search = replace(known, tools=asked.search_tools or known.tools)
    if asked.root is not None:
        project = replace(project, root=asked.root)
    return FoldSettings(reads=_reads(settings.reads, asked), terminal=terminal, search=search, project=project)


def _reads(rule: ReadRule | None, asked: FoldOptions) -> ReadRule | None:
    if not asked.read_tools and not asked.path_args and asked.keep is None:
        return rule
    rule = rule or ReadRule()
    return replace(
        rule,
        tools=asked.read_tools or rule.tools,
        path_args=asked.path_args or rule.path_args,
        keep=rule.keep if asked.keep is None else asked.keep,
    )


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
