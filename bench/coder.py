"""What the coder's tools cost, each beside a peer that does the same, in the same run. A missed goal is only told.

Search: through the tool, beside ripgrep alone, on a project that is made for it.
Snapshots: of the same project before a turn changes it, beside `git add` into a repository of its own.
Files: an edit of a long one, and a read of a source that is new each time, with its symbols; neither has a peer.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from goal import Goal
from processes import scratch

from recto.tools.function import make_tool
from recto.tools.ports import Tool, ToolContext
from recto.tools.workspace.ace_text_search import ace_text_search
from recto.tools.workspace.filesystem_edit import filesystem_edit
from recto.tools.workspace.filesystem_read import filesystem_read
from recto.tools.workspace.ripgrep import Program, Query, find_ripgrep
from recto.tools.workspace.snapshots import Snapshots, SnapshotTurn
from recto.tools.workspace.workspaces import Workspace

SEARCH_TIMES, SNAPSHOT_TIMES, EDIT_MS = 1.3, 5.0, 50.0
EDITED_BYTES = 5_000_000
FOLDERS, FILES, LINES = 80, 50, 120
WORDS = ("return", "value", "request", "answer", "of", "the", "if not", "in", "for", "import", "self", "class", "path")
RARE = "quicksilver"
# What each is called, the pattern, whether it is a regular expression.
SEARCHES = (
    ("a rare word", RARE, False),
    ("no match", "nowhere at all", False),
    ("an expression", r"def \w+silver\(", True),
    ("a common word", "import", False),
)


class Options(argparse.Namespace):
    """What the command line says."""

    quick: bool
    json: Path | None


def main() -> None:
    """Measure, print, and write the figures down where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON")
    options = parser.parse_args(namespace=Options())
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.", flush=True)
    with scratch(None) as folder:
        place, rounds = Path(folder), 2 if options.quick else 21
        goals = [*measure_search(place / "project", rounds), *measure_snapshots(place, rounds)]
        goals += measure_files(place / "files", rounds)
    print("\n".join(map(str, goals)))
    if options.json:
        options.json.write_text(json.dumps({"goals": [asdict(goal) for goal in goals]}, indent=2) + "\n")


def measure_search(folder: Path, rounds: int) -> Iterator[Goal]:
    """Measure each search by ripgrep alone and through the tool, in turns, so that noise falls on both."""
    program = find_ripgrep()
    make_project(folder)
    print(f"{FOLDERS * FILES:,} files; ripgrep is confined.", flush=True)
    tool = make_tool(ace_text_search)
    for name, pattern, is_regex in SEARCHES:
        query = Query(pattern=pattern, is_regex=is_regex)
        with asyncio.Runner() as loop:
            alone, ours = in_turns(
                rounds,
                partial(_ripgrep_alone, program, folder, query),
                partial(_through_tool, loop, tool, folder, query),
            )
        yield Goal(name=f"search of ripgrep, {name}", value=ours / alone, unit="x", most=SEARCH_TIMES)
        yield Goal(name=f"ripgrep alone, {name}", value=1_000 * alone, unit="ms")


def measure_snapshots(place: Path, rounds: int) -> Iterator[Goal]:
    """The first of a project, and the next ones, before each of which one file is written."""
    ours, git, file = Snapshots(root=place / "snapshots"), place / "git", place / "project" / "changed.py"
    workspace, numbers = Workspace(folder=place / "project"), itertools.count()
    subprocess.run(["git", "init", "--quiet", "--bare", str(git)], check=True)
    # Ignored files are in neither; what git has to look at is the same.
    words = ["git", f"--git-dir={git}", f"--work-tree={workspace.folder}", "add", "--all"]

    def keep() -> None:
        number = next(numbers)
        file.write_text(f"# {number}\n")
        ours.save_turn(workspace, "t", SnapshotTurn(message=f"m{number}", admission_time=datetime.now(UTC)))

    def add() -> None:
        file.write_text(f"# {next(numbers)} of git\n")
        subprocess.run(words, check=True)

    first = [_seconds(work) for work in (keep, add)]
    # What was written a moment ago is read again, here as by git.
    time.sleep(1.5)
    keep_seconds, added = in_turns(rounds, keep, add)
    yield Goal(name="snapshot of git add, first turn", value=first[0] / first[1], unit="x")
    yield Goal(name="snapshot of git add, next turns", value=keep_seconds / added, unit="x", most=SNAPSHOT_TIMES)
    yield Goal(name="snapshot, first turn", value=1_000 * first[0], unit="ms")
    yield Goal(name="snapshot, next turns", value=1_000 * keep_seconds, unit="ms")


def measure_files(folder: Path, rounds: int) -> Iterator[Goal]:
    """From the call of the tool to its answer. Every edit takes back the one before."""
    folder.mkdir()
    lines = [f"def value_{number:06}(request): return request.answer\n" for number in range(EDITED_BYTES // 50)]
    (folder / "long.py").write_text("".join(lines), encoding="utf-8")
    edit, read = make_tool(filesystem_edit), make_tool(filesystem_read)
    source, numbers = "".join(lines[:200]), itertools.count()
    names = itertools.cycle([("value", "other"), ("other", "value")])

    def change() -> None:
        old, new = next(names)
        arguments = {"searchContent": f"{old}_050000", "replaceContent": f"{new}_050000"}
        _call(loop, edit, folder, {"filePath": "long.py", **arguments})

    def look() -> None:
        (folder / "new.py").write_text(f"# {next(numbers)}\n{source}", encoding="utf-8")
        _call(loop, read, folder, {"filePath": "new.py"})

    with asyncio.Runner() as loop:
        edit_seconds, read_seconds = in_turns(rounds, change, look)
    yield Goal(name="edit of a file of 5 MB", value=1_000 * edit_seconds, unit="ms", most=EDIT_MS)
    yield Goal(name="read of a source of 10 KB that changed", value=1_000 * read_seconds, unit="ms")


def in_turns(rounds: int, *works: Callable[[], object]) -> list[float]:
    """The median seconds of each, after a first time that does not count."""
    seconds: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(rounds):
        for work, times in zip(works, seconds, strict=True):
            times.append(_seconds(work))
    return [statistics.median(times) for times in seconds]


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _ripgrep_alone(program: Program, folder: Path, query: Query) -> None:
    """As a person calls it, its output read."""
    words = [program.path, "--line-number", "--hidden", "--no-require-git", "--glob=!.git"]
    words += [] if query.is_regex else ["--fixed-strings"]
    subprocess.run([*words, "--", query.pattern, "./"], cwd=folder, capture_output=True, check=False)


def _through_tool(loop: asyncio.Runner, tool: Tool, folder: Path, query: Query) -> None:
    _call(loop, tool, folder, {"pattern": query.pattern, "isRegex": query.is_regex})


def _call(loop: asyncio.Runner, tool: Tool, folder: Path, arguments: Mapping[str, object]) -> None:
    context = ToolContext(
        owner="ann", thread="t", run="r", call="c", now=datetime.now(UTC), workspace=Workspace(folder=folder)
    )
    error = loop.run(_act(tool, json.dumps(arguments), context))
    if error:
        raise SystemExit(f"{tool.name} failed: {error}")


async def _act(tool: Tool, arguments: str, context: ToolContext) -> str | None:
    return (await tool.act(arguments, context)).error


def make_project(folder: Path) -> None:
    """A project of some thousand files, the same every time, with what is ignored beside it."""
    chance = random.Random(19)
    for number in range(FOLDERS):
        inner = folder / f"part{number % 8}" / f"module{number}"
        inner.mkdir(parents=True)
        for file in range(FILES):
            (inner / f"file{file}.py").write_text("\n".join(_lines(chance)), encoding="utf-8")
    (folder / ".gitignore").write_text("*.log\n/build/\n__pycache__\n", encoding="utf-8")
    (folder / "build").mkdir()
    (folder / "build" / "made.js").write_text(f"{RARE}\n" * 1_000, encoding="utf-8")


def _lines(chance: random.Random) -> Sequence[str]:
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(0, 10))) for _ in range(LINES)]
    return [*lines, f"def {RARE}():"] if chance.random() < 0.01 else lines


if __name__ == "__main__":
    main()
