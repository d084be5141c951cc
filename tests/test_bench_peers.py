"""The servers of peers in the bench: they compile, and their locks have what they name."""

import py_compile
from pathlib import Path

import pytest

from tests.house import ROOT

PEERS = ROOT / "bench" / "peers"


@pytest.mark.parametrize("name", ["pydantic_ai", "agno"])
def test_a_peer_has_a_server_that_compiles_and_a_lock_of_what_it_names(name: str, tmp_path: Path):
    py_compile.compile(str(PEERS / f"{name}_server.py"), cfile=str(tmp_path / "peer.pyc"), doraise=True)
    named = (PEERS / f"{name}.in").read_text(encoding="utf-8").split()
    packages = [line.partition("=")[0].partition("[")[0] for line in named]
    locked = (PEERS / f"{name}.lock").read_text(encoding="utf-8")
    assert packages
    assert [package for package in packages if f"\n{package}==" not in locked] == []
