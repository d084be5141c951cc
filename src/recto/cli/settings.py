"""Settings of folding in force: the command line over a config file over what the session is known to use."""

from __future__ import annotations

from dataclasses import dataclass, replace

from recto.cli.sessions import Session
from recto.page import FoldSettings, Project, ReadRule
from recto.page.folding import SEARCH, TERMINAL


@dataclass(frozen=True, kw_only=True)
class Wishes:
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


def with_wishes(settings: FoldSettings, wishes: Wishes, session: Session) -> FoldSettings:
    """The settings with those of the command line over them."""
    terminal, search, project = settings.terminal, settings.search, settings.project
    if wishes.terminal_tools:
        terminal = replace(terminal or TERMINAL, tools=wishes.terminal_tools)
    if wishes.search or wishes.search_tools:
        known = search or replace(SEARCH, tools=session.tools.search or SEARCH.tools)
        search = replace(known, tools=wishes.search_tools or known.tools)
    if wishes.root is not None:
        project = replace(project, root=wishes.root)
    return FoldSettings(reads=_reads(settings.reads, wishes), terminal=terminal, search=search, project=project)


def _reads(rule: ReadRule | None, wishes: Wishes) -> ReadRule | None:
    if not wishes.read_tools and not wishes.path_args and wishes.keep is None:
        return rule
    rule = rule or ReadRule()
    return replace(
        rule,
        tools=wishes.read_tools or rule.tools,
        path_args=wishes.path_args or rule.path_args,
        keep=rule.keep if wishes.keep is None else wishes.keep,
    )
