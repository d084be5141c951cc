"""The bench of skills runs and tells every figure; how large they are is for people to judge."""

import subprocess
import sys

import pytest

from tests.house import ROOT


@pytest.mark.full
def test_the_bench_of_skills_runs_and_tells_its_figures():
    command = [sys.executable, "bench/skills.py", "--quick"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout
    title, *figures = said.splitlines()
    assert title.startswith("200 skills, 500 cases")
    assert len(figures) == 6
    # Tokens do not depend on the machine.
    assert [line.split()[-1] for line in figures if " tok " in line] == ["met", "met"]
