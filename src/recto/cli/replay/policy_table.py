"""Reports of `recto replay`: policies of a session, or a row per session and their sum.

Tables fit into 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recto.cli.fold.report import FORMATS
from recto.cli.replay.results import NONE, PolicyRun, ReplayedSession, share_saved, total, worst_point
from recto.cli.replay.stretches import ReplaySettings
from recto.conversation.json import Json

NEVER, NOTHING = "never", "-"
LEGEND = (
    "Saved and Worst (the largest loss up to any call) compare with none. Kept: lines quoted by edits that the page "
    "still contains. Again: folded reads of files that are read again later. Full at: the first call whose page "
    "exceeds {window:,} tokens without compactions. Prices of {as_of}; tokens are estimates, counted with {counter}."
)
# Table width, and the least width of a session name.
COLUMNS, LEAST_NAME = 80, 12


def replay_report(sessions: Sequence[ReplayedSession], settings: ReplaySettings) -> RenderableType:
    """Report on one session by policy, or on several with their sum."""
    if len(sessions) == 1:
        (session,) = sessions
        heading = f"{FORMATS[session.format]}, {session.messages:,} messages, {session.calls:,} calls of "
        table = _policies(session.runs, [session], settings)
        parts = [Text(heading + ", ".join(session.models)), table, *map(Text, _notes(session, settings))]
    else:
        runs = summed(sessions)
        calls = sum(session.calls for session in sessions)
        heading = f"{len(sessions)} sessions, {calls:,} calls"
        parts = [_sessions(sessions), Text(heading), _policies(runs, sessions, settings)]
    legend = LEGEND.format(window=settings.window, as_of=settings.prices.as_of, counter=settings.counter.name)
    return Group(*parts, Text(legend))


def _policies(runs: Mapping[str, PolicyRun], sessions: Sequence[ReplayedSession], settings: ReplaySettings) -> Table:
    table = _table("Policy", settings.prices.currency, "Saved", "Input", "Breaks", "Kept", "Again", "Worst", "Full at")
    base = runs[NONE]
    for name, run in runs.items():
        worst = max(worst_point(session.runs[name], session.runs[NONE]) for session in sessions)
        is_base = name == NONE
        evidence = run.evidence
        table.add_row(
            name,
            f"{run.price:,.2f}",
            NOTHING if is_base else _percent(share_saved(run, base), 1),
            _short(sum(run.pages)),
            f"{run.breaks:,}",
            _percent(evidence.kept_count / evidence.quoted_count, 2) if evidence.quoted_count else NOTHING,
            f"{run.read_again:,}",
            NOTHING if is_base else _percent(worst, 1),
            _full_at(name, sessions),
        )
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for index, name in enumerate(names):
        table.add_column(name, justify="right" if index else "left", no_wrap=True)
    return table


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f} %"


def _short(tokens: int) -> str:
    for size, sign in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if tokens >= size:
            return f"{tokens / size:.1f} {sign}"
    return str(tokens)


def _full_at(policy: str, sessions: Sequence[ReplayedSession]) -> str:
    full_calls = [at for session in sessions if (at := session.runs[policy].full_at) is not None]
    if len(sessions) > 1:
        return f"{len(full_calls)} of {len(sessions)}"
    return f"{full_calls[0]:,}" if full_calls else NEVER


def _sessions(sessions: Sequence[ReplayedSession]) -> Table:
    policies = [name for name in sessions[0].runs if name != NONE]
    headings = ("Calls", NONE, *[heading for name in policies for heading in (f"{name} %", "kept %")])
    rows = [_figures(session, policies) for session in sessions]
    widths = [1 + max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    room = max(COLUMNS - sum(widths), LEAST_NAME)
    table = _table("Session", *headings)
    for session, figures in zip(sessions, rows, strict=True):
        name = session.name if len(session.name) <= room else f"…{session.name[1 - room :]}"
        table.add_row(name, *figures)
    return table


def _figures(session: ReplayedSession, policies: Sequence[str]) -> list[str]:
    base = session.runs[NONE]
    figures = [f"{session.calls:,}", f"{base.price:,.2f}"]
    for run in [session.runs[name] for name in policies]:
        evidence = run.evidence
        figures.append(f"{100 * share_saved(run, base):.1f}")
        figures.append(f"{100 * evidence.kept_count / evidence.quoted_count:.1f}" if evidence.quoted_count else NOTHING)
    return figures


def summed(sessions: Sequence[ReplayedSession]) -> Mapping[str, PolicyRun]:
    """Sum all sessions by policy."""
    return {name: total([session.runs[name] for session in sessions]) for name in sessions[0].runs}


def _notes(session: ReplayedSession, settings: ReplaySettings) -> Iterator[str]:
    yield from session.notes
    yield f"Replies cost {session.replies:,.2f} {settings.prices.currency} more under every policy."
    if session.recorded is not None:
        yield f"By the counts of the provider, the session cost {session.recorded:,.2f} {settings.prices.currency}."


def replay_rows(sessions: Sequence[ReplayedSession], settings: ReplaySettings) -> dict[str, Json]:
    """Return the results as JSON."""
    return {
        "currency": settings.prices.currency,
        "as_of": settings.prices.as_of.isoformat(),
        "window": settings.window,
        "sessions": [_session_row(session) for session in sessions],
        "sum": _policy_rows(summed(sessions), sessions) if sessions else {},
    }


def _session_row(session: ReplayedSession) -> dict[str, Json]:
    return {
        "name": session.name,
        "format": session.format,
        "messages": session.messages,
        "calls": session.calls,
        "models": list(session.models),
        "replies": float(session.replies),
        "recorded": None if session.recorded is None else float(session.recorded),
        "policies": _policy_rows(session.runs, [session]),
    }


def _policy_rows(runs: Mapping[str, PolicyRun], sessions: Sequence[ReplayedSession]) -> dict[str, Json]:
    base = runs[NONE]
    return {
        name: {
            "price": float(run.price),
            "saved": share_saved(run, base),
            "input": sum(run.pages),
            "breaks": run.breaks,
            "folds": run.folds,
            "quoted": run.evidence.quoted_count,
            "kept": run.evidence.kept_count,
            "read_again": run.read_again,
            "worst": max(worst_point(session.runs[name], session.runs[NONE]) for session in sessions),
            "full_at": run.full_at,
        }
        for name, run in runs.items()
    }
