"""Reports of `recto replay`: policies of a session, or a row per session and their sum.

Tables fit into 80 columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recto.cli.fold.report import FORMATS
from recto.cli.replay.results import NONE, PolicyRun, ReplayedSession, share_saved, total, worst_point
from recto.cli.replay.stretches import ReplaySettings
from recto.conversation.json import Json

NEVER, NOTHING = "never", "-"
SIZES = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
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
        table, currency = _policies(session.runs, [session], settings), settings.prices.currency
        notes = [*session.notes, f"Replies cost {session.replies:,.2f} {currency} more under every policy."]
        if session.recorded is not None:
            notes.append(f"By the counts of the provider, the session cost {session.recorded:,.2f} {currency}.")
        parts = [Text(heading + ", ".join(session.models)), table, *map(Text, notes)]
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
        evidence, tokens = run.evidence, sum(run.pages)
        sizes = [f"{tokens / size:.1f} {sign}" for size, sign in SIZES if tokens >= size]
        full_calls = [f"{at:,}" for session in sessions if (at := session.runs[name].full_at) is not None]
        table.add_row(
            name,
            f"{run.price:,.2f}",
            NOTHING if is_base else _percent(share_saved(run, base), 1),
            sizes[0] if sizes else str(tokens),
            f"{run.breaks:,}",
            _percent(evidence.kept_count / evidence.quoted_count, 2) if evidence.quoted_count else NOTHING,
            f"{run.read_again:,}",
            NOTHING if is_base else _percent(worst, 1),
            f"{len(full_calls)} of {len(sessions)}" if len(sessions) > 1 else full_calls[0] if full_calls else NEVER,
        )
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for index, name in enumerate(names):
        table.add_column(name, justify="right" if index else "left", no_wrap=True)
    return table


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f} %"


def _sessions(sessions: Sequence[ReplayedSession]) -> Table:
    policies = [name for name in sessions[0].runs if name != NONE]
    headings = ("Calls", NONE, *[heading for name in policies for heading in (f"{name} %", "kept %")])
    rows: list[list[str]] = []
    for session in sessions:
        base = session.runs[NONE]
        rows.append([f"{session.calls:,}", f"{base.price:,.2f}"])
        for run in [session.runs[name] for name in policies]:
            evidence = run.evidence
            share = f"{100 * evidence.kept_count / evidence.quoted_count:.1f}" if evidence.quoted_count else NOTHING
            rows[-1] += [f"{100 * share_saved(run, base):.1f}", share]
    widths = [1 + max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    room = max(COLUMNS - sum(widths), LEAST_NAME)
    table = _table("Session", *headings)
    for session, figures in zip(sessions, rows, strict=True):
        name = session.name if len(session.name) <= room else f"…{session.name[1 - room :]}"
        table.add_row(name, *figures)
    return table


def summed(sessions: Sequence[ReplayedSession]) -> Mapping[str, PolicyRun]:
    """Sum all sessions by policy."""
    return {name: total([session.runs[name] for session in sessions]) for name in sessions[0].runs}


def replay_rows(sessions: Sequence[ReplayedSession], settings: ReplaySettings) -> dict[str, Json]:
    """Return the results as JSON."""
    return {
        "currency": settings.prices.currency,
        "as_of": settings.prices.as_of.isoformat(),
        "window": settings.window,
        "sessions": [
            {
                "name": session.name,
                "format": session.format,
                "messages": session.messages,
                "calls": session.calls,
                "models": list(session.models),
                "replies": float(session.replies),
                "recorded": None if session.recorded is None else float(session.recorded),
                "policies": _policy_rows(session.runs, [session]),
            }
            for session in sessions
        ],
        "sum": _policy_rows(summed(sessions), sessions) if sessions else {},
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
