"""`recto fold`: the savings of folding in a conversation."""

from __future__ import annotations

import logging
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console

from recto.agents.fold_table import FoldTable, fold_table, frozen, with_table
from recto.cli.command import WRONG_USE, stop
from recto.cli.fold.report import report, tokens_of_messages
from recto.cli.sessions.reader import read_session_file
from recto.cli.sessions.session import Session
from recto.conversation.json import dump, load_object, parse_time
from recto.errors import RectoError, SettingsError
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.fold.agent_tools import rule_for
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import RULES, FoldRule, RuleOption, Sets, rules_in
from recto.page.manifest_rows import shown_rows
from recto.page.prompt.reminder import Locale

SessionSource = Annotated[
    str, typer.Argument(metavar="FILE", help="Conversation or session file; `-` is standard input.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print messages, manifest and tokens as JSON.")]
Every = Annotated[bool, typer.Option("--all", help="List each fold instead of each file.")]
Root = Annotated[str | None, typer.Option(metavar="DIR", help="Project root, for relative paths.")]
Now = Annotated[
    str | None, typer.Option(metavar="ISO", help="Time to measure ages at.  [default: the newest timestamp]")
]
LOCALE = "locale"
InLocale = Annotated[Locale, typer.Option("--locale", help="Language of the placeholders.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file with a [fold] table.")]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Log each page; -vv: also each file.")
]

# Type, metavar and help suffix of an option, by the setting it changes.
TYPES: Mapping[Sets, tuple[object, str | None, str]] = {
    "on": (bool, None, ""),
    "keep": (int | None, "N", "  [default: {rule.keep}]"),
    "tools": (list[str] | None, "NAME", " Repeatable."),
    "path_args": (list[str] | None, "NAME", " Repeatable."),
}


@dataclass(frozen=True, kw_only=True)
class FoldOptions:
    """Values from the command line. `values` contains the options that `parameters` adds, by name."""

    root: str | None
    config: Path | None
    rules: Sequence[FoldRule]
    values: Mapping[str, object]


def parameters(rules: Sequence[FoldRule]) -> list[Parameter]:
    """Return the options of the rules, and the placeholder language, as command parameters."""
    result: list[Parameter] = []
    for rule, option in [(one, option) for one in rules for option in one.options]:
        hint, metavar, more = TYPES[option.sets]
        typer_option = typer.Option(option.flag, metavar=metavar, help=option.help + more.format(rule=rule))
        default, annotation = False if option.sets == "on" else None, Annotated[hint, typer_option]
        result.append(Parameter(_name(option), Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return [*result, Parameter(LOCALE, Parameter.KEYWORD_ONLY, default="zh", annotation=InLocale)]


def _name(option: RuleOption) -> str:
    return option.flag.removeprefix("--").replace("-", "_")


def fold_settings(session: Session, options: FoldOptions) -> FoldSettings:
    """Merge defaults, the session's tool names, the file and the command line, in increasing precedence."""
    options = replace(options, rules=rules_in(str(options.values[LOCALE]), options.rules))
    rules = tuple([rule_for(rule, session.tools) for rule in options.rules if rule.on])
    settings = FoldSettings(rules=rules, project=Project(root=session.root))
    if options.config is not None:
        settings = with_table(settings, load_config(options.config, options.rules), options.rules)
    if options.root is not None:
        settings = replace(settings, project=replace(settings.project, root=options.root))
    for rule in options.rules:
        values = [(option.sets, options.values[_name(option)]) for option in rule.options]
        overrides = {name: frozen(value) for name, value in values if value not in (None, []) and value is not False}
        if overrides:
            base = settings.rule(rule.name) or rule_for(rule, session.tools)
            settings = replace(settings, **{rule.name: replace(base, **overrides)})
    return settings


def load_config(path: Path, rules: Sequence[FoldRule] = RULES) -> FoldTable:
    """Read the `[fold]` table of a file. Raise SettingsError if it is unreadable or has unknown names."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return fold_table(rules).model_validate(document.get("fold", {}))
    except OSError as error:
        allowed = f"it cannot be read ({error.strerror})"
        raise SettingsError(name="--config", value=str(path), allowed=allowed) from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(step) for step in ("fold", *first["loc"]))
        raise SettingsError(name=name, value=first["input"], allowed=first["msg"].lower()) from error
    except ValueError as error:
        raise SettingsError(name="--config", value=str(path), allowed=f"it is not valid TOML ({error})") from error


def fold_command(rules: Sequence[FoldRule] = RULES) -> Callable[..., None]:
    """Return the command with the options of these rules."""

    def fold(
        file: SessionSource,
        *,
        as_json: AsJson = False,
        every: Every = False,
        root: Root = None,
        now: Now = None,
        config: Config = None,
        verbose: Verbose = 0,
        **values: object,
    ) -> None:
        """Show how many tokens folding saves in a conversation.

        Reads OpenAI-style JSON, and sessions of pi, Claude Code, Codex and opencode. Exit codes: 0 success, 1 failure,
        2 usage error.
        """
        if verbose:
            logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")
            logging.getLogger("recto").setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        options = FoldOptions(root=root, config=config, rules=rules, values=values)
        try:
            with Console(stderr=True).status("Folding"):
                session = read_session_file(file)
                facts = Facts(log=session.messages, fold=fold_settings(session, options), now=_time(now))
                page, manifest = assemble(facts)
        except RectoError as error:
            raise stop("fold", error, WRONG_USE) from error
        if verbose:
            # Imported here: only --verbose needs it.
            from prometheus_client import CollectorRegistry

            from recto.telemetry import PageTelemetry

            PageTelemetry(CollectorRegistry()).record_page(manifest)
        if as_json:
            messages = (load_object(page.body) or {}).get("messages")
            parts, tokens = shown_rows(manifest.rows(), page.body), asdict(tokens_of_messages(manifest))
            result = {"messages": messages, "manifest": parts, "tokens": tokens}
            sys.stdout.buffer.write(dump(result) + b"\n")
            sys.stdout.buffer.flush()
        else:
            Console(highlight=False).print(report(session, manifest, every=every, rules=rules))

    own = list(signature(fold, eval_str=True).parameters.values())[:-1]
    place = 1 + [parameter.name for parameter in own].index("now")
    full_signature = Signature([*own[:place], *parameters(rules), *own[place:]])
    # typer reads the parameters from `__signature__`.
    setattr(fold, "__signature__", full_signature)  # noqa: B010 - the type of a function has no such field
    return fold


def _time(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text is not None else None
    except ValueError as error:
        allowed = "use an ISO 8601 time, such as 2026-01-31T02:50:00Z"
        raise SettingsError(name="--now", value=text, allowed=allowed) from error


fold = fold_command()
