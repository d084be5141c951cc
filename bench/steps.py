"""A thousand steps of the shipped coder with a model that answers at once: what of their time is the page's.

The tools are the real ones, in a folder that is made for it. A missed goal is told, not raised.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from goal import Goal
from processes import Process, scratch, start_recto
from traffic import TOKEN

from recto.agents.folders import SHIPPED
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, ModelServer, Request

STEPS, FILES, LINES, STRETCHES = 1_000, 8, 120, 10
SHARE_PERCENT, FLAT_TIMES = 3.0, 1.3
RUNS, PATIENCE = "/api/v1/agent/runs", 0.2
SUM = re.compile(r"^recto_page_seconds_(sum|count) (\S+)$", re.MULTILINE)
# The coder's own limit is for tasks of people.
MORE_STEPS = ("steps: 400", f"steps: {STEPS + 10}")


class Options(argparse.Namespace):
    """What the command line says."""

    steps: int
    json: Path | None


@dataclass(kw_only=True)
class Script:
    """The model: the next call each time it is asked, and when that was."""

    steps: int
    starts: list[float] = field(default_factory=list[float])
    values: list[int] = field(default_factory=lambda: [0] * FILES)
    sizes: list[int] = field(default_factory=list[int])

    def answer(self, request: Request) -> Answer:
        """A summary where one is wanted, else the next step."""
        if not request.page.get("tools"):
            return Answer(text="What was done so far.", usage=None)
        number = len(self.starts)
        self.starts.append(time.perf_counter())
        self.sizes.append(len(request.body))
        if number >= self.steps:
            return Answer(text="Done.", usage=None)
        name, arguments = self._call(number)
        call = Call(name=name, arguments=json.dumps(arguments), id=f"call_{number}")
        # Nobody counts its tokens but we: it is compacted as with a model that reports none.
        return Answer(text=f"Step {number}.", calls=(call,), usage=None)

    def _call(self, number: int) -> tuple[str, object]:
        file, path = number // 4 % FILES, f"src/part{number // 4 % FILES}.py"
        match number % 4:
            case 0:
                return "filesystem-read", {"filePath": path}
            case 1:
                before, self.values[file] = self.values[file], self.values[file] + 1
                change = {"searchContent": f"VALUE = {before}\n", "replaceContent": f"VALUE = {before + 1}\n"}
                return "filesystem-edit", {"filePath": path, **change}
            case 2:
                return "ace-text_search", {"pattern": f"VALUE = {number}"}
            case _:
                return "terminal-execute", {"command": f"wc -l src/*.py; echo {number}"}


def main() -> None:
    """Measure, print, and write the figures down where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, help="how many")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON")
    options = parser.parse_args(namespace=Options())
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.", flush=True)
    with scratch(None) as folder:
        goals = [*measure_steps(Path(folder), options.steps)]
    print("\n".join(map(str, goals)))
    if options.json:
        options.json.write_text(json.dumps({"goals": [asdict(goal) for goal in goals]}, indent=2) + "\n")


def measure_steps(folder: Path, steps: int) -> Iterator[Goal]:
    """Play the steps, and ask the server's own metrics how long its pages took."""
    script = Script(steps=steps)
    make_project(folder / "project")
    with ModelServer(script.answer, keep=False) as model:
        settings = {"RECTO_AGENTS": str(make_agents(folder / "agents")), "RECTO_MODE": "full"}
        settings["RECTO_WORKSPACE"] = str(folder / "project")
        recto = start_recto(folder, urlsplit(model.root).port or 0, settings)
        try:
            begin = time.perf_counter()
            samples = list(play(recto, script))
            wall = time.perf_counter() - begin
        finally:
            recto.stop()
    pages = [seconds / count for seconds, count in samples if count]
    print(f"{steps:,} steps; a page has up to {max(script.sizes) / 1_000:,.0f} kB. Pages took, in ms, by tenths:")
    print("  " + " ".join(f"{1_000 * page:.2f}" for page in pages), flush=True)
    share = 100 * sum(seconds for seconds, _ in samples) / wall
    between = [after - before for before, after in zip(script.starts, script.starts[1:], strict=False)]
    yield Goal(name="pages of the time of all steps", value=share, unit="%", most=SHARE_PERCENT)
    flat = statistics.mean(pages[len(pages) // 2 :]) / statistics.mean(pages[: len(pages) // 2])
    yield Goal(name="a page of the second half beside the first", value=flat, unit="x", most=FLAT_TIMES)
    yield Goal(name="a page", value=1_000 * sum(seconds for seconds, _ in samples) / (steps + 1), unit="ms")
    yield Goal(name="a step, median", value=1_000 * statistics.median(between), unit="ms")
    half = len(between) // 2
    slower = statistics.median(between[half:]) / statistics.median(between[:half])
    yield Goal(name="a step of the second half beside the first", value=slower, unit="x", most=FLAT_TIMES)


def play(recto: Process, script: Script) -> Iterator[tuple[float, float]]:
    """Seconds and number of the pages in each tenth of the steps, until the run is over."""
    message = {"id": "m1", "role": "user", "content": "Go."}
    body = {"threadId": new_id(), "runId": "r1", "messages": [message], "forwardedProps": {"agent": "coder"}}
    task = json.loads(ask(recto, "POST", RUNS, json.dumps(body)))["taskId"]
    before, stretch, is_over = (0.0, 0.0), script.steps // STRETCHES, False
    while not is_over:
        time.sleep(PATIENCE)
        is_over = json.loads(ask(recto, "GET", f"{RUNS}/{task}"))["status"] not in ("queued", "running")
        if is_over or len(script.starts) >= before[1] + stretch:
            now = page_seconds(ask(recto, "GET", "/metrics"))
            yield now[0] - before[0], now[1] - before[1]
            before = now


def page_seconds(metrics: str) -> tuple[float, float]:
    """How long all pages took, and how many there were."""
    sums = dict(SUM.findall(metrics))
    return float(sums["sum"]), float(sums["count"])


def ask(recto: Process, method: str, path: str, body: str = "") -> str:
    """One request, and the text of its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", recto.port, timeout=60)
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    if answer.status >= 400:
        raise SystemExit(f"{method} {path} was answered with {answer.status}: {text}")
    return text


def make_project(folder: Path) -> None:
    """Some files to read and to change."""
    (folder / "src").mkdir(parents=True)
    for number in range(FILES):
        lines: Sequence[str] = [f"def work_{number}_{line}(): return {line}" for line in range(LINES)]
        (folder / "src" / f"part{number}.py").write_text("VALUE = 0\n" + "\n".join(lines) + "\n", encoding="utf-8")


def make_agents(folder: Path) -> Path:
    """The shipped coder, which may take more steps."""
    (folder / "coder").mkdir(parents=True)
    text = (SHIPPED / "coder" / "AGENT.md").read_text(encoding="utf-8")
    (folder / "coder" / "AGENT.md").write_text(text.replace(*MORE_STEPS), encoding="utf-8")
    return folder


if __name__ == "__main__":
    main()
