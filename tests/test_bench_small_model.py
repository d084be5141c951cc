"""The trial of a small model runs against any compatible server and tells its figures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recto.testing.model_server import Answer, ModelServer, Request
from tests.house import ROOT

pytestmark = pytest.mark.full


def model(asked: Request) -> Answer:
    last = str(asked.page["messages"])
    return Answer(text="Done." if "'tool'" in last else '{"name": "calculator", "arguments": {"expression": "17*23"}}')


@pytest.mark.parametrize(("calling", "called", "shown"), [("auto", 2, 0), ("native", 0, 3)])
def test_the_trial_of_a_small_model_counts_calls_and_calls_that_were_shown(
    tmp_path: Path, calling: str, called: int, shown: int
):
    written, replies, bounds = tmp_path / "tries.json", tmp_path / "replies.jsonl", set[object]()

    def bounded(asked: Request) -> Answer:
        bounds.add(asked.page["max_tokens"])
        return model(asked)

    with ModelServer(bounded) as server:
        options = [
            "--url",
            server.url,
            "--model",
            "m",
            "--tool-calling",
            calling,
            "--tries",
            "3",
            "--max-tokens",
            "120",
            "--replies",
            str(replies),
            "--json",
            str(written),
        ]
        command = [sys.executable, "bench/small_model.py", *options]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout
    assert bounds == {120}
    kept = [json.loads(line) for line in replies.read_text(encoding="utf-8").splitlines()]
    assert '{"name": "calculator", "arguments": {"expression": "17*23"}}' in {one["reply"] for one in kept}
    assert {one["finish"] for one in kept} == {"stop"}
    tries = json.loads(written.read_text(encoding="utf-8"))
    assert [one["is_done"] for one in tries if one["kind"] == "skill"] == [True] * 3
    assert sum(one["is_done"] for one in tries if one["kind"] == "tool") == called
    assert "skills taken up" in said
    assert "/6" in next(line for line in said.splitlines() if line.startswith("replies that showed a call"))
    assert sum(one["is_shown"] for one in tries) >= shown
