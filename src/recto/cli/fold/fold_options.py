"""Settings of `recto fold`: tool names of the session, then a TOML file, then the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from recto.agents.fold_table import FoldTable, fold_table, frozen, with_table
from recto.cli.sessions.session import Session
from recto.errors import SettingsError
from recto.page.fold.agent_tools import rule_for
from recto.page.fold.fold_settings import FoldSettings
from recto.page.fold.paths import Project
from recto.page.fold.rules import RULES, FoldRule, RuleOption, Sets, rules_in
from recto.page.prompt.reminder import Locale

SessionSource = Annotated[
    str, typer.Argument(metavar="FILE", help="Conversation or session file; `-` is standard input.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print messages, manifest and tokens as JSON.")]
Every = Annotated[bool, typer.Option("--all", help="List each fold instead of each file.")]
Root = Annotated[str | None, typer.Option(metavar="DIR", help="Project root, for relative paths.")]
Now = Annotated[
    str | None,
    typer.Option(metavar="ISO", help="Time to measure ages at.  [default: the newest timestamp]"),
]
LOCALE = "locale"
InLocale = Annotated[Locale, typer.Option("--locale", help="Language of the placeholders.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file with a [fold] table.")]
Verbose = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, show_default=False, help="Log each page; -vv: also each file."),
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
    """Values from the command line. `given` holds the `parameters` of the `rules`, by name."""

    root: str | None
    config: Path | None
    rules: Sequence[FoldRule]
    values: Mapping[str, object]


def parameters(rules: Sequence[FoldRule]) -> list[Parameter]:
    """Return the options of the rules, and the placeholder language, as command parameters."""
    locale = Parameter(LOCALE, Parameter.KEYWORD_ONLY, default="zh", annotation=InLocale)
    return [*[_parameter(rule, option) for rule in rules for option in rule.options], locale]


def _parameter(rule: FoldRule, option: RuleOption) -> Parameter:
    hint, metavar, more = TYPES[option.sets]
    typer_option = typer.Option(option.flag, metavar=metavar, help=option.help + more.format(rule=rule))
    default = False if option.sets == "on" else None
    return Parameter(_name(option), Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, typer_option])


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
    new_rules = [_with_options(settings, rule, options.values, session) for rule in options.rules]
    return replace(settings, **{rule.name: rule for rule in new_rules if rule})


def _with_options(
    settings: FoldSettings, rule: FoldRule, values: Mapping[str, object], session: Session
) -> FoldRule | None:
    base = settings.rule(rule.name)
    overrides = {option.sets: value for option in rule.options if _is_set(value := values[_name(option)])}
    if not overrides:
        return base
    return replace(base or rule_for(rule, session.tools), **{name: frozen(value) for name, value in overrides.items()})


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != []


def load_config(path: Path, rules: Sequence[FoldRule] = RULES) -> FoldTable:
    """Read the `[fold]` table of a file. Raise SettingsError if it is unreadable or has unknown names."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return fold_table(rules).model_validate(document.get("fold", {}))
    except OSError as error:
        raise SettingsError(
            name="--config", value=str(path), allowed=f"it cannot be read ({error.strerror})"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(step) for step in ("fold", *first["loc"]))
        raise SettingsError(name=name, value=first["input"], allowed=first["msg"].lower()) from error
    except ValueError as error:
        raise SettingsError(name="--config", value=str(path), allowed=f"it is not valid TOML ({error})") from error
