"""The benches run and tell every figure of the table; how large they are is for people to judge."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.testing.model_server import Answer, ModelServer
from tests.layers import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from bench.table import BENCHES, ROWS, GoalRow

pytestmark = pytest.mark.full
# What a quick run has in small.
FEWER = {"1000 streams, a word late, p99", "1000 streams, memory, peak", "memory, 10,000 lines beside 1,000"}


def run(script: str, *options: str) -> str:
    """Run a script of the bench and return what it printed."""
    command = [sys.executable, f"bench/{script}.py", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("bench", BENCHES)
def test_a_bench_runs_and_tells_every_figure_of_the_table(bench: str, tmp_path: Path):
    encoded = tmp_path / "figures.json"
    body_row = run(bench, *BENCHES[bench], "--json", str(encoded))
    row = json.loads(encoded.read_text(encoding="utf-8"))
    figures = cast("Sequence[GoalRow]", row if isinstance(row, list) else row["goals"])
    values = {figure["name"] for figure in figures}
    assert {name for of, name in ROWS if of == bench} - FEWER <= values
    assert all(figure["value"] >= 0 and figure["name"] in body_row for figure in figures)


def test_the_table_tells_met_missed_and_unmeasured_goals(tmp_path: Path):
    cold = {"name": "cold", "value": 25.0, "unit": "ms", "goal": 20.0, "verdict": "MISSED"}
    for bench in BENCHES:
        if bench != "server":
            (tmp_path / f"{bench}.json").write_text(json.dumps([cold] if bench == "page" else []), encoding="utf-8")
    *rows, server, count = run("table", "--figures", str(tmp_path)).partition("== Goals for speed\n")[2].splitlines()
    assert [row.split() for row in rows if "NOT MEASURED" not in row] == [
        ["cold", "25.00", "ms", "goal", "<=", "20", "MISSED"]
    ]
    assert server == "NO FIGURES OF bench/server.py: it did not come to its end."
    assert count == f"1 of {len(ROWS)} are missed, {len(ROWS) - 1} not measured."


def test_the_trial_of_a_small_model_counts_calls_and_calls_that_were_shown(tmp_path: Path):
    encoded, call = tmp_path / "tries.json", '{"name": "calculator", "arguments": {"expression": "17*23"}}'
    with ModelServer(
        lambda question: Answer(text="Done." if "'tool'" in str(question.page["messages"]) else call)
    ) as server:
        where = ("--url", server.url, "--model", "m", "--json", str(encoded))
        words = run("small_model", *where, "--tool-calling", "auto", "--tries", "3")
    tries = json.loads(encoded.read_text(encoding="utf-8"))
    assert {kind: sum(one["is_done"] for one in tries if one["kind"] == kind) for kind in ("skill", "tool")} == {
        "skill": 3,
        "tool": 2,
    }
    assert "skills taken up" in words
