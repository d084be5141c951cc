"""SVG plot of a replay: cumulative price and page size per call, by policy.

The SVG is self-contained; its colours work on light and dark backgrounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from recto.cli.replay.policy_table import summed
from recto.cli.replay.results import ReplayedSession
from recto.cli.replay.stretches import ReplaySettings

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
