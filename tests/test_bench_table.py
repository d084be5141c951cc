"""The table at the end of all benches: every goal for speed in its order, and loudly what nobody measured."""

import json
import subprocess
import sys
from pathlib import Path

from tests.house import ROOT

PAGE = [
    {"name": "cold", "value": 25.0, "unit": "ms", "goal": 20.0, "verdict": "MISSED"},
    {"name": "warm, a command run", "value": 2.5, "unit": "ms", "goal": 3.0, "verdict": "met"},
    {"name": "memory, a kept log, beside its text", "value": 2.5, "unit": "x", "goal": None, "verdict": ""},
    {"name": "full assembly, warm", "value": 9.0, "unit": "ms", "goal": 5.0, "verdict": "MISSED"},
]
FILES = [{"name": "upload of SHA-256 alone", "value": 90.0, "unit": "%", "least": 85.0, "most": None}]


def printed(*options: str) -> list[str]:
    command = [sys.executable, "bench/table.py", *options]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=True).stdout
    return said.partition("== Goals for speed\n")[2].splitlines()


def test_the_table_has_every_goal_in_its_order_and_says_loudly_what_is_missing(tmp_path: Path):
    (tmp_path / "page.json").write_text(json.dumps(PAGE), encoding="utf-8")
    (tmp_path / "files.json").write_text(json.dumps({"goals": FILES}), encoding="utf-8")
    (tmp_path / "skills.json").write_text(json.dumps({"goals": []}), encoding="utf-8")
    (tmp_path / "coder.json").write_text(json.dumps({"goals": []}), encoding="utf-8")
    (tmp_path / "steps.json").write_text(json.dumps({"goals": []}), encoding="utf-8")
    (tmp_path / "gateway.json").write_text(json.dumps({"goals": []}), encoding="utf-8")
    (tmp_path / "chat.json").write_text(json.dumps({"goals": []}), encoding="utf-8")
    *rows, server, count, elsewhere = printed("--figures", str(tmp_path))
    assert len(rows) == 33
    assert rows[0] == f"{'recto of direct, 8 at once':<44}NOT MEASURED: bench/server.py told no figure of this name."
    (cold, command, kept, upload) = [row.split() for row in rows if "NOT MEASURED" not in row]
    assert cold == ["cold", "25.00", "ms", "goal", "<=", "20", "MISSED"]
    assert command[-3:] == ["<=", "3", "met"]
    assert " ".join(kept[-7:]) == "2.50 x NO GOAL: bench/page.py names none."
    assert upload == ["upload", "of", "SHA-256", "alone", "90.00", "%", "goal", ">=", "85", "met"]
    assert server == "NO FIGURES OF bench/server.py: it did not come to its end."
    assert count == "1 of 33 are missed, 29 not measured."
    assert elsewhere == "Beside these, missed: full assembly, warm"
