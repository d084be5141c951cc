"""`recto fold`: the savings of folding in a conversation."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from inspect import Signature, signature

from rich.console import Console

from recto.cli.command import WRONG_USE, stop
from recto.cli.fold import fold_options
from recto.cli.fold.fold_options import FoldOptions, fold_settings, parameters
from recto.cli.fold.report import report, tokens_of_messages
from recto.cli.sessions.session import Session
from recto.cli.sessions.session_file import read_session_file
from recto.conversation.json import dump, load_object, parse_time
from recto.errors import RectoError, SettingsError
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts
from recto.page.fold.rules import RULES, FoldRule
from recto.page.manifest import Manifest
from recto.page.manifest_rows import shown_rows


def fold_command(rules: Sequence[FoldRule] = RULES) -> Callable[..., None]:
    """Return the command with the options of these rules."""

    def fold(
        file: fold_options.SessionSource,
        *,
        as_json: fold_options.AsJson = False,
        every: fold_options.Every = False,
        root: fold_options.Root = None,
        now: fold_options.Now = None,
        config: fold_options.Config = None,
        verbose: fold_options.Verbose = 0,
        **values: object,
    ) -> None:
        """Show how many tokens folding saves in a conversation.

        Reads OpenAI-style JSON, and sessions of pi, Claude Code, Codex and opencode. Exit codes: 0 success, 1 failure,
        2 usage error.
        """
        _log_to_stderr(verbose)
        session, page, manifest = _assemble(
            file, now, FoldOptions(root=root, config=config, rules=rules, values=values)
        )
        if verbose:
            _log_page(manifest)
        if as_json:
            _print_json(page, manifest)
        else:
            Console(highlight=False).print(report(session, manifest, every=every, rules=rules))

    own = list(signature(fold, eval_str=True).parameters.values())[:-1]
    place = 1 + [parameter.name for parameter in own].index("now")
    full_signature = Signature([*own[:place], *parameters(rules), *own[place:]])
    # typer reads the parameters from here.
    setattr(fold, "__signature__", full_signature)  # noqa: B010 - the type of a function has no such field
    return fold


def _assemble(file: str, now: str | None, options: FoldOptions) -> tuple[Session, Page, Manifest]:
    try:
        with Console(stderr=True).status("Folding"):
            session = read_session_file(file)
            facts = Facts(log=session.messages, fold=fold_settings(session, options), now=_time(now))
            page, manifest = assemble(facts)
    except RectoError as error:
        raise stop("fold", error, WRONG_USE) from error
    return session, page, manifest


def _log_to_stderr(verbose: int) -> None:
    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
        logging.getLogger("recto").setLevel(logging.INFO if verbose == 1 else logging.DEBUG)


def _log_page(manifest: Manifest) -> None:
    # Imported here: only --verbose needs it.
    from prometheus_client import CollectorRegistry

    from recto.telemetry import PageTelemetry

    PageTelemetry(CollectorRegistry()).record_page(manifest)


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text is not None else None
    except ValueError as error:
        allowed = "use an ISO 8601 time, such as 2026-01-31T02:50:00Z"
        raise SettingsError(name="--now", value=text, allowed=allowed) from error


def _print_json(page: Page, manifest: Manifest) -> None:
    messages, parts = (load_object(page.body) or {}).get("messages"), shown_rows(manifest.rows(), page.body)
    result = {"messages": messages, "manifest": parts, "tokens": asdict(tokens_of_messages(manifest))}
    sys.stdout.buffer.write(dump(result) + b"\n")
    sys.stdout.buffer.flush()


fold = fold_command()
