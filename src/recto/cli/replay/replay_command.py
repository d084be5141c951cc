"""`recto replay`: the price of recorded sessions under each folding policy."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import accumulate
from math import ceil, floor, log10
from pathlib import Path
from typing import Annotated
from xml.sax.saxutils import escape

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from recto.cli.command import FAILED, exit_codes
from recto.cli.replay.policies import POLICIES
from recto.cli.replay.policy_table import replay_report, replay_rows, summed
from recto.cli.replay.results import NONE, ReplayedSession, replay_session
from recto.cli.replay.stretches import ReplaySettings
from recto.cli.sessions.reader import STDIN, STDIN_NAME, read_session_file
from recto.conversation.json import dump
from recto.errors import NoPrice, RectoError, SettingsError
from recto.models.prices import load_prices

WIDTH, HEIGHT, PANEL = 760, 560, 200
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, GAP = 70, 20, 56, 64
COLOURS = ("#7f8793", "#d1495b", "#c98a00", "#2a9d8f", "#3d7dd8")
TICKS, THOUSAND = 5, 1_000
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-size: 13px; font-weight: 600 }
  .ground { fill: #fff } .grid { stroke: #ddd } .axis { stroke: #888 }
  .line { fill: none; stroke-width: 1.8; stroke-linejoin: round }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .ground { fill: #16181c } .grid { stroke: #333840 } .axis { stroke: #777 }
  }
"""


def plot_svg(sessions: Sequence[ReplayedSession], settings: ReplaySettings) -> str:
    """Draw the sessions one after another."""
    runs = summed(sessions)
    body: list[str] = []
    for index, (name, run) in enumerate(runs.items()):
        x, colour = MARGIN_LEFT + index * 160, COLOURS[index % len(COLOURS)]
        body += [f'<line x1="{x}" x2="{x + 22}" y1="20" y2="20" stroke="{colour}" stroke-width="3"/>']
        body += [_text(x + 28, 24, f"{name} {run.price:,.2f}")]
    prices = [[float(price) for price in accumulate(run.prices)] for run in runs.values()]
    body += _panel(f"Price so far, {settings.prices.currency}", MARGIN_TOP, prices)
    body += _panel("Tokens of the page", MARGIN_TOP + PANEL + GAP, [run.pages for run in runs.values()])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    name = sessions[0].name if len(sessions) == 1 else f"{len(sessions)} sessions"
    title = f"<title>{escape(name)}</title>"
    ground = f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>'
    return "\n".join([head, title, f"<style>{STYLE}</style>", ground, *body, "</svg>", ""])


def _panel(title: str, top: int, lines: Sequence[Sequence[float]]) -> Iterator[str]:
    """Yield the elements of a chart with a line per policy."""
    right, bottom = WIDTH - MARGIN_RIGHT, top + PANEL
    calls = max([len(line) for line in lines], default=1)
    most = max([value for line in lines for value in line], default=0) or 1
    steps = _ticks(most)
    high = steps[-1]
    yield _text(MARGIN_LEFT, top - 10, title, "title")
    for value in steps:
        y = bottom - PANEL * value / high
        yield f'<line class="grid" x1="{MARGIN_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(MARGIN_LEFT - 8, y + 4, _label(value), anchor="end")
    for value in _ticks(calls):
        if 0 < value <= calls:
            yield _text(
                MARGIN_LEFT + (right - MARGIN_LEFT) * value / calls, bottom + 18, _label(value), anchor="middle"
            )
    yield _text(right, bottom + 34, "calls", anchor="end")
    yield f'<line class="axis" x1="{MARGIN_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
    for index, line in enumerate(lines):
        # At most about one point per pixel, including the last.
        places = dict.fromkeys((*range(0, len(line), max(1, ceil(len(line) / (right - MARGIN_LEFT)))), len(line) - 1))
        points = " ".join(
            f"{MARGIN_LEFT + (right - MARGIN_LEFT) * (place + 1) / calls:.1f},{bottom - PANEL * line[place] / high:.1f}"
            for place in places
            if line
        )
        yield f'<polyline class="line" stroke="{COLOURS[index % len(COLOURS)]}" points="{points}"/>'


def _ticks(most: float) -> list[float]:
    """Return round values from 0 to the first one not below `most`."""
    rough = most / TICKS
    size = 10.0 ** floor(log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    return [step * number for number in range(ceil(most / step - 1e-9) + 1)]


def _label(value: float) -> str:
    return f"{value / THOUSAND:g}k" if value >= THOUSAND else f"{value:g}"


def _text(x: float, y: float, text: str, name: str = "", *, anchor: str = "start") -> str:
    styled = f' class="{name}"' if name else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{styled}>{escape(text)}</text>'


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
