"""S3, X4: a server killed around an activation goes on in the skill; nothing is activated twice."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.conversation.log import SkillChanged
from recto.testing.model_server import Answer, Request
from tests.end_to_end.harness import Harness
from tests.end_to_end.skilled import system_of, use, write_guide
from tests.end_to_end.test_crash import assert_whole
from tests.support.client import ask, start

pytestmark = pytest.mark.full


def a_chart(request: Request) -> Answer:
    """The model: it takes up a skill, then answers as its expert."""
    messages = cast("list[Mapping[str, Json]]", request.page["messages"])
    return Answer(text="As the stars say.") if system_of(messages).startswith("# 命盘") else use("chart")


# The last is between the activation and the next call: what is on is in the log, and nothing else knows it.
@pytest.mark.parametrize(("point", "times"), [("tools_started", 1), ("tool_acted", 1), ("call_begun", 2)])
def test_S3_X4_a_server_killed_around_an_activation_goes_on_in_the_skill(point: str, times: int, tmp_path: Path):
    with Harness(tmp_path, a_chart) as harness:
        write_guide(harness.agents)
        # Words that no skill is triggered by: it is the model that takes it up.
        body = ask("帮我看看") | {"forwardedProps": {"agent": "guide"}}
        reader = harness.killed(body, point, times)
        with harness.serve():
            start(harness.url, body)
            log = assert_whole(harness, body, reader.wait())
            changes = [entry for entry in log if isinstance(entry, SkillChanged)]
            assert [(change.skill, change.scenario) for change in changes] == [("chart", "basic")]
            prompts = [
                system_of(cast("list[Mapping[str, Json]]", model_request.page["messages"]))
                for model_request in harness.model.requests
            ]
            assert prompts[0].startswith("你是向导。")
            assert all(prompt.startswith("# 命盘") for prompt in prompts[1:])
