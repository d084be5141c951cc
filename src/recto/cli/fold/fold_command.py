"""`recto fold`: what folding saves in a conversation. Reads a file and writes nothing to it."""

from __future__ import annotations

import logging
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from prometheus_client import CollectorRegistry
from rich.console import Console

from recto.agents.fold_table import with_table
from recto.cli import options
from recto.cli.command import WRONG_USE, stop
from recto.cli.fold.fold_options import FoldOptions, load_config, settings_of, with_options
from recto.cli.fold.report import report, tokens_of_messages
from recto.cli.fold.sessions.detect import read_session
from recto.cli.fold.sessions.session import Session
from recto.conversation.fields import parse_time
from recto.conversation.json import dump, load_object
from recto.errors import NotAConversation, RectoError, SettingsError
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts
from recto.page.fold.fold_settings import FoldSettings
from recto.page.manifest import Manifest
from recto.telemetry import PageTelemetry

STDIN = "-"


def fold(
    file: options.SessionSource,
    *,
    as_json: options.AsJson = False,
    every: options.Every = False,
    root: options.Root = None,
    now: options.Now = None,
    keep: options.Keep = None,
    read_tool: options.ReadTool = None,
    path_arg: options.PathArg = None,
    terminal_tool: options.TerminalTool = None,
    search_tool: options.SearchTool = None,
    search: options.Search = False,
    config: options.Config = None,
    verbose: options.Verbose = 0,
) -> None:
    """Show what folding saves in a conversation: OpenAI-style JSON, or a session of pi, Claude Code or Codex.

    Reads the file and writes nothing to it. Exit codes: 0 done, 1 failed, 2 wrong use.
    """
    _log_to_stderr(verbose)
    asked = FoldOptions(
        root=root,
        keep=keep,
        read_tools=tuple(read_tool or ()),
        path_args=tuple(path_arg or ()),
        terminal_tools=tuple(terminal_tool or ()),
        search_tools=tuple(search_tool or ()),
        search=search,
    )
    session, page, manifest = _assemble(file, now, config, asked)
    if as_json:
        _print_json(page, manifest)
    else:
        Console(highlight=False).print(report(session, manifest, every=every))


def _assemble(file: str, now: str | None, config: Path | None, asked: FoldOptions) -> tuple[Session, Page, Manifest]:
    try:
        with Console(stderr=True).status("Folding"):
            session = _read(file)
            settings = _settings(session, config, asked)
            page, manifest = assemble(Facts(log=session.messages, fold=settings, now=_time(now)))
    except RectoError as error:
        raise stop("fold", error, WRONG_USE) from error
    PageTelemetry(CollectorRegistry()).record(manifest)
    return session, page, manifest


def _log_to_stderr(verbose: int) -> None:
    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
        logging.getLogger("recto").setLevel(logging.INFO if verbose == 1 else logging.DEBUG)


def _read(file: str) -> Session:
    name = "standard input" if file == STDIN else file
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise NotAConversation(source=name, problem=f"it cannot be read ({error.strerror})") from error
    return read_session(data, source=name)


def _settings(session: Session, config: Path | None, asked: FoldOptions) -> FoldSettings:
    settings = settings_of(session)
    if config is not None:
        settings = with_table(settings, load_config(config))
    return with_options(settings, asked, session)


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text is not None else None
    except ValueError as error:
        allowed = "it is an ISO 8601 time such as 2026-01-31T02:50:00Z"
        raise SettingsError(name="--now", value=text, allowed=allowed) from error


def _print_json(page: Page, manifest: Manifest) -> None:
    messages = (load_object(page.body) or {}).get("messages")
    result = {"messages": messages, "manifest": manifest.rows(), "tokens": asdict(tokens_of_messages(manifest))}
    sys.stdout.buffer.write(dump(result) + b"\n")
    sys.stdout.buffer.flush()
