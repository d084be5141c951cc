"""An agent that nobody here wrote, in an environment of its own, pointed at the gateway and otherwise as it comes."""

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, Request
from tests.api.relaying_server import ALICE, JSON, OLD, relaying_server, whole_chat
from tests.layers import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from bench.peer import environment_of

STEPS, LINES = 40, 400
TASK = "Write the word done into made.txt."
LAST = "echo done > made.txt && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def step(model_request: Request) -> Answer:
    """Read a long file again and again, then do the task."""
    number = sum(
        1 for one in cast("list[dict[str, Json]]", model_request.page["messages"]) if one["role"] == "assistant"
    )
    command = LAST if number == STEPS else f"cat long.txt; echo {number}"
    function: Json = {"name": "bash", "arguments": f'{{"command": "{command}"}}'}
    call: Json = {"id": f"call_{number}", "type": "function", "function": function}
    return Answer(headers=JSON, body=whole_chat("Next.", tool_calls=[call]), framing="length")


def settings(url: str, home: Path) -> dict[str, str]:
    environment = {"OPENAI_API_KEY": ALICE, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1"}
    quiet = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_SILENT_STARTUP": "1"}
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "LITELLM_LOCAL_MODEL_COST_MAP": "True", **environment, **quiet}


@pytest.mark.full
def test_X3_mini_swe_agent_works_through_the_gateway_as_it_comes(tmp_path: Path):
    mini = environment_of("mini_swe_agent").parent / "mini"
    work = tmp_path / "work"
    work.mkdir()
    (work / "long.txt").write_text("A line of some length that says nothing at all.\n" * LINES, "utf-8")
    with relaying_server(tmp_path / "data") as server:
        server.scripts.append(step)
        done = subprocess.run(
            [str(mini), "--yolo", "--exit-immediately", "--model", "openai/m", "--task", TASK, "--cost-limit", "0"],
            cwd=work,
            env=settings(server.url, tmp_path),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (work / "made.txt").exists(), done.stdout[-2_000:] + done.stderr[-2_000:]
        assert done.returncode == 0
        (thread,) = server.rows("/threads", "threads")
        calls = server.rows(f"/threads/{thread['id']}/calls", "calls")
        assert len(calls) == STEPS + 1
        # It went on without what was folded meanwhile.
        assert any(cast("int", call["saved"]) > 0 for call in calls)
        assert OLD in server.last_request.body.decode()
