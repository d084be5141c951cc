"""The bench of files runs and tells every figure; how large they are is for people to judge."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import ROOT


@pytest.mark.full
@pytest.mark.parametrize("flags", [(), ("--full",)])
def test_the_bench_of_files_runs_and_writes_its_figures(tmp_path: Path, flags: tuple[str, ...]):
    written = tmp_path / "figures.json"
    options = ["--megabytes", "4", "--small", "40", "--rounds", "1", "--alone", "--json", str(written), *flags]
    command = [sys.executable, "bench/files.py", *options]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout
    goals = json.loads(written.read_text(encoding="utf-8"))["goals"]
    assert len(goals) == 14
    assert all(goal["value"] >= 0 and goal["name"] in said for goal in goals)
