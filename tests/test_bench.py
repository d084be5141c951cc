"""The benches run and tell every figure of the table; how large they are is for people to judge."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.house import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from bench.table import BENCHES, ROWS, Written

pytestmark = pytest.mark.full
# What a quick run has in small.
FEWER = {"1000 streams, a word late, p99", "1000 streams, memory, peak", "memory, 10,000 lines beside 1,000"}


def run(bench: str, folder: Path, *options: str) -> tuple[list[Written], str]:
    """What a bench wrote down, and what it said."""
    written = folder / "figures.json"
    command = [sys.executable, f"bench/{bench}.py", *options, "--json", str(written)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(written.read_text(encoding="utf-8"))
    return list(cast("Sequence[Written]", told if isinstance(told, list) else told["goals"])), done.stdout


@pytest.mark.parametrize("bench", BENCHES)
def test_a_bench_runs_and_tells_every_figure_of_the_table(bench: str, tmp_path: Path):
    figures, said = run(bench, tmp_path, *BENCHES[bench])
    named = {figure["name"] for figure in figures}
    assert {name for of, name in ROWS if of == bench} - FEWER <= named
    assert all(figure["value"] >= 0 and figure["name"] in said for figure in figures)
