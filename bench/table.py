"""All benches one after the other, and at the end one table of the goals for speed. What was not measured is said."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from goal import Goal
from peer import HERE
from processes import scratch

# The benches in the order they run, and how each is told to be quick and to leave peers out.
BENCHES: Mapping[str, Sequence[str]] = {
    "page": ("--quick", "--no-peer"),
    "server": ("--quick", "--only", "direct,recto"),
    "files": ("--megabytes", "4", "--small", "40", "--rounds", "1", "--alone"),
    "skills": ("--quick",),
    "coder": ("--quick",),
    "steps": ("--steps", "200"),
    "gateway": ("--rounds", "10"),
    "chat": ("--quick",),
}
# The rows of the table: a bench, and what it calls the figure. Its goal stands in the bench.
ROWS: Sequence[tuple[str, str]] = (
    ("server", "recto of direct, 8 at once"),
    ("server", "recto of direct, 32 at once"),
    ("server", "ag-ui of runs, 8 at once"),
    ("server", "ag-ui of runs, 32 at once"),
    ("server", "first token, 1 at once, beyond direct"),
    ("server", "1000 streams, a word late, p99"),
    ("server", "1000 streams, memory, peak"),
    ("server", "ready, new data folder"),
    ("server", "memory at rest"),
    ("server", "recto --help, CPU"),
    ("server", "recto fold of a small file, CPU"),
    ("server", "recto agents explain chat, CPU"),
    ("server", "recto user tier, CPU"),
    ("page", "4,000 messages, 20 shown, warm"),
    ("page", "4,000 messages, 20 shown, cold"),
    ("page", "its manifest, beside what is shown"),
    ("page", "standstill, cold page of 1,640"),
    ("page", "cold"),
    ("page", "warm, a command run"),
    ("page", "10x messages, warm, one message added"),
    ("page", "10x messages, warm, a file read again"),
    ("page", "10x messages, warm, a command run"),
    ("page", "memory, a kept log, beside its text"),
    ("page", "call of 1,000 messages, rebuilt"),
    ("page", "two such calls, compared"),
    ("files", "upload of SHA-256 alone"),
    ("coder", "search of ripgrep, a rare word"),
    ("coder", "edit of a file of 5 MB"),
    ("steps", "pages of the time of all steps"),
    ("steps", "a page of the second half beside the first"),
    ("gateway", "first byte, beyond direct, median"),
    ("chat", "recto chat, to the prompt, beyond --version"),
    ("chat", "memory, 10,000 lines beside 1,000"),
)


class Options(argparse.Namespace):
    """What the command line says."""

    quick: bool
    figures: Path | None


class GoalRow(TypedDict):
    """A figure as a bench writes it down. `goal` is the most that a page may take; others say `least` or `most`."""

    name: str
    value: float
    unit: str
    least: NotRequired[float | None]
    most: NotRequired[float | None]
    goal: NotRequired[float | None]


@dataclass(frozen=True, kw_only=True)
class Results:
    """What the benches told, by bench and name; and those that told nothing."""

    goals: Mapping[tuple[str, str], Goal]
    silent: Sequence[str]


def main() -> int:
    """Run the benches, or take what they wrote before, and print the table. 1 where one did not come to its end."""
    options = _options()
    if options.figures:
        results = read(options.figures)
        print("\n".join(table(results)))
        return 0
    with scratch(None) as folder:
        failed = [bench for bench in BENCHES if not _run(bench, Path(folder), quick=options.quick)]
        results = read(Path(folder))
    print("\n".join(table(results)))
    return 1 if failed else 0


def _options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each bench in short, without peers and streams")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="only the table, of what `--json` wrote there")
    return parser.parse_args(namespace=Options())


def _run(bench: str, folder: Path, *, quick: bool) -> bool:
    print(f"== bench/{bench}.py", flush=True)
    command = [sys.executable, str(HERE / f"{bench}.py"), "--json", str(folder / f"{bench}.json")]
    return subprocess.run([*command, *(BENCHES[bench] if quick else ())], check=False).returncode == 0


def read(folder: Path) -> Results:
    """What the benches wrote into a folder."""
    goals, silent = dict[tuple[str, str], Goal](), list[str]()
    for bench in BENCHES:
        path = folder / f"{bench}.json"
        if not path.exists():
            silent.append(bench)
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = cast("Sequence[GoalRow]", content if isinstance(content, list) else content["goals"])
        goals |= {(bench, row["name"]): _goal(row) for row in rows}
    return Results(goals=goals, silent=silent)


def _goal(row: GoalRow) -> Goal:
    most = row["goal"] if "goal" in row else row.get("most")
    return Goal(name=row["name"], value=row["value"], unit=row["unit"], least=row.get("least"), most=most)


def table(results: Results) -> list[str]:
    """The table, then all that it does not show and somebody should know."""
    goals = [results.goals.get(row) for row in ROWS]
    rest = [goal for row, goal in results.goals.items() if row not in ROWS]
    missed = [goal.name for goal in goals if goal and goal.verdict == "MISSED"]
    lines = ["== Goals for speed", *[_line(row, goal) for row, goal in zip(ROWS, goals, strict=True)]]
    lines += [f"NO FIGURES OF bench/{bench}.py: it did not come to its end." for bench in results.silent]
    lines.append(f"{len(missed)} of {len(ROWS)} are missed, {goals.count(None)} not measured.")
    if elsewhere := [goal.name for goal in rest if goal.verdict == "MISSED"]:
        lines.append(f"Beside these, missed: {'; '.join(elsewhere)}")
    return lines


def _line(row: tuple[str, str], goal: Goal | None) -> str:
    bench, name = row
    if goal is None:
        return f"{name:<44}NOT MEASURED: bench/{bench}.py told no figure of this name."
    return str(goal) if goal.verdict else f"{goal} NO GOAL: bench/{bench}.py names none."


if __name__ == "__main__":
    sys.exit(main())
