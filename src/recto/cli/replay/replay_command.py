"""`recto replay`: the price of recorded sessions under each folding policy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from recto.cli.command import FAILED, exit_codes
from recto.cli.replay.plot import plot_svg
from recto.cli.replay.policies import POLICIES
from recto.cli.replay.policy_table import replay_report, replay_rows
from recto.cli.replay.results import NONE, ReplayedSession, replay_session
from recto.cli.replay.stretches import ReplaySettings
from recto.cli.sessions.reader import STDIN, STDIN_NAME, read_session_file
from recto.conversation.json import dump
from recto.errors import NoPrice, RectoError, SettingsError
from recto.models.prices import load_prices

ENDINGS = (".json", ".jsonl")
NAME_CHARACTERS = 40

Sessions = Annotated[
    list[str], typer.Argument(metavar="FILE", help="Session files or folders of them; `-` is standard input.")
]
PriceList = Annotated[Path | None, typer.Option("--prices", metavar="FILE", help="TOML file of prices.")]
Policies = Annotated[
    list[str] | None,
    typer.Option("--policy", metavar="NAME", help="none, eager, clear or cost. Repeatable.  [default: all]"),
]
PricedModel = Annotated[
    str, typer.Option("--model", metavar="MODEL", help="Model whose prices apply.  [default: the session's]")
]
Window = Annotated[int, typer.Option("--window", metavar="N", min=1, help="Context window in tokens.")]
CacheMinutes = Annotated[
    float, typer.Option("--cache-minutes", metavar="N", min=0, help="Minutes that the provider caches a prefix.")
]
ClearOver = Annotated[
    int, typer.Option("--clear-over", metavar="N", min=0, help="Page size in tokens at which `clear` starts.")
]
ClearKeep = Annotated[int, typer.Option("--clear-keep", metavar="N", min=0, help="Newest results that `clear` keeps.")]
PlayCut = Annotated[bool, typer.Option("--cut", help="Restart where agents compacted their sessions.")]
FiguresAsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw price and page size per call, as SVG.")]


def replay(
    files: Sessions,
    *,
    prices: PriceList = None,
    policy: Policies = None,
    model: PricedModel = "",
    window: Window = 200_000,
    cache_minutes: CacheMinutes = 5,
    clear_over: ClearOver = 100_000,
    clear_keep: ClearKeep = 3,
    cut: PlayCut = False,
    as_json: FiguresAsJson = False,
    plot: Plot = None,
) -> None:
    """Show how much folding would have saved in recorded sessions.

    Reads sessions of pi, Claude Code, Codex and opencode, and OpenAI-style JSON. Replays each session call by call
    under each policy, with the provider's prompt cache: `none` folds nothing, `eager` applies the rules on every call,
    `clear` clears old results once a page is long, `cost` folds where it saves money.

    Exit codes: 0 success, 1 a file failed, 2 usage error.
    """
    with exit_codes("replay"):
        if unknown := [name for name in policy or () if name not in POLICIES]:
            raise SettingsError(name="--policy", value=unknown[0], allowed=f"choose from {', '.join(POLICIES)}")
        settings = ReplaySettings(
            prices=load_prices(prices),
            policies=tuple(policy or POLICIES),
            model=model,
            window=window,
            cache_life=timedelta(minutes=cache_minutes),
            clear_over=clear_over,
            clear_keep=clear_keep,
            cut=cut,
        )
        sessions, problems = _play(_files(files), settings)
        if as_json:
            rows = {**replay_rows(sessions, settings), "problems": problems}
            sys.stdout.buffer.write(dump(rows) + b"\n")
            sys.stdout.buffer.flush()
        elif sessions:
            Console(highlight=False).print(replay_report(sessions, settings))
        for problem in problems:
            typer.echo(f"recto replay: {problem}", err=True)
        if plot is not None and sessions:
            plot.write_text(plot_svg(sessions, settings), encoding="utf-8")
    if problems:
        raise typer.Exit(FAILED)


def _files(files: Sequence[str]) -> list[str]:
    """Expand folders to their session files, sorted by name."""
    paths: list[str] = []
    for file in files:
        if not Path(file).is_dir():
            paths.append(file)
            continue
        inside = sorted(str(path) for path in Path(file).rglob("*") if path.suffix in ENDINGS and path.is_file())
        if not inside:
            allowed = "the folder contains no .json or .jsonl file"
            raise SettingsError(name="FILE", value=file, allowed=allowed)
        paths += inside
    return paths


def _play(files: Sequence[str], settings: ReplaySettings) -> tuple[list[ReplayedSession], list[str]]:
    sessions: list[ReplayedSession] = []
    problems: list[str] = []
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        each = len({NONE, *settings.policies})
        bar = progress.add_task("", total=each * len(files))
        for number, file in enumerate(files):
            name = STDIN_NAME if file == STDIN else file
            progress.update(bar, description=name[-NAME_CHARACTERS:], completed=each * number)
            try:
                session = read_session_file(file)
                sessions.append(replay_session(session, name, settings, lambda: progress.advance(bar)))
            except NoPrice as error:
                problems.append(f"{name}: {error}")
            except RectoError as error:
                problems.append(str(error))
    return sessions, problems
