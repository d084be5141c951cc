"""The bench runs and tells every figure; how large they are is for people to judge."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import ROOT

pytestmark = pytest.mark.full


def test_the_bench_of_the_page_runs_and_writes_its_figures(tmp_path: Path):
    written = tmp_path / "figures.json"
    command = [sys.executable, "bench/page.py", "--quick", "--no-peer", "--json", str(written)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True).stdout
    figures = {figure["name"]: figure for figure in json.loads(written.read_text(encoding="utf-8"))}
    assert {"cold", "warm, one message added", "10x messages, cold", "memory, page and manifest"} <= set(figures)
    assert all(figure["value"] > 0 for figure in figures.values())
    assert all(name in said for name in figures)
