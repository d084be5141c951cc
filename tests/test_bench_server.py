"""The bench of the server runs and tells every figure; how large they are is for people to judge."""

import json
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import ROOT

PEERS = ROOT / "bench" / "peers"

pytestmark = pytest.mark.full


def test_the_bench_of_the_server_runs_and_writes_its_figures(tmp_path: Path):
    written = tmp_path / "figures.json"
    command = [sys.executable, "bench/server.py", "--quick", "--only", "direct,recto", "--json", str(written)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True).stdout
    figures = json.loads(written.read_text(encoding="utf-8"))
    measured = {(row["target"], row["at_once"]) for row in figures["runs"]}
    assert measured == {(name, many) for name in ("direct", "recto", "recto ag-ui") for many in (1, 8, 32)}
    assert all(row["rate"] > 0 and row["first"] <= row["end"] for row in figures["runs"])
    assert "runs/s" in said
    assert all(goal["name"] in said for goal in figures["goals"])


def test_a_few_open_streams_are_measured(tmp_path: Path):
    written = tmp_path / "figures.json"
    options = ["--rounds", "1", "--seconds", "0.2", "--streams", "20", "--stream-seconds", "2", "--json", str(written)]
    command = [sys.executable, "bench/server.py", "--only", "recto", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    goals = {goal["name"]: goal["value"] for goal in json.loads(written.read_text(encoding="utf-8"))["goals"]}
    assert goals["20 streams, still open"] == 20
    assert goals["20 streams, memory, peak"] > 0


@pytest.mark.parametrize("name", ["pydantic_ai", "agno"])
def test_a_peer_has_a_server_that_compiles_and_a_lock_of_what_it_names(name: str, tmp_path: Path):
    py_compile.compile(str(PEERS / f"{name}_server.py"), cfile=str(tmp_path / "peer.pyc"), doraise=True)
    named = (PEERS / f"{name}.in").read_text(encoding="utf-8").split()
    packages = [line.partition("=")[0].partition("[")[0] for line in named]
    locked = (PEERS / f"{name}.lock").read_text(encoding="utf-8")
    assert packages
    assert [package for package in packages if f"\n{package}==" not in locked] == []
