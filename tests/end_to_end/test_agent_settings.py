"""What an agent's settings and a client's own words do to the page: seen in what the model received."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.client import ask, request, run
from recto.testing.model_server import Answer
from tests.end_to_end.harness import Harness, a_note_then_an_answer

pytestmark = pytest.mark.full

SETTINGS = """\
---
temperature: 0.25
max_tokens: 321
reasoning_effort: low
tool_choice: required
output: {type: object, properties: {done: {type: boolean}}, required: [done]}
options: {top_k: 7}
locale: en
---
You are a careful helper.
"""


def pages(harness: Harness) -> list[Mapping[str, Json]]:
    return [made.page for made in harness.model.requests]


def messages(page: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    return cast("list[Mapping[str, Json]]", page["messages"])


def test_an_agent_says_how_the_model_is_asked(tmp_path: Path):
    with Harness(tmp_path, a_note_then_an_answer) as harness:
        (harness.agent / "AGENT.md").write_text(SETTINGS, encoding="utf-8")
        with harness.serve():
            run(harness.url, ask("Please note it"))
        first, second = pages(harness)
    asked = {"temperature": 0.25, "max_tokens": 321, "reasoning_effort": "low", "top_k": 7}
    assert {name: first[name] for name in asked} == asked
    schema = cast("Mapping[str, Mapping[str, Json]]", first["response_format"])["json_schema"]["schema"]
    assert schema == {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}
    # Made to call a tool, it did; now it may answer.
    assert (first["tool_choice"], second["tool_choice"]) == ("required", "auto")


def test_C4_each_agent_has_its_own_model_and_a_thread_keeps_its_agent(tmp_path: Path):
    with Harness(tmp_path, lambda made: Answer(text="Well.")) as harness:
        other = harness.agents / "other"
        other.mkdir()
        (other / "AGENT.md").write_text("---\nmodel: compatible:special\n---\nYou are another.\n", encoding="utf-8")
        with harness.serve():
            asked = ask("hello")
            run(harness.url, {**asked, "forwardedProps": {"agent": "other"}})
            again = {**ask("and again"), "threadId": asked["threadId"]}
            run(harness.url, again)
            run(harness.url, ask("somebody else"))
            names = [one["name"] for one in cast("list[dict[str, Json]]", _agents(harness)["agents"])]
            refused = request(
                harness.url, "POST", "/api/v1/agent/runs", {**ask("x"), "forwardedProps": {"agent": "no"}}
            )
        assert [page["model"] for page in pages(harness)] == ["special", "special", "scripted"]
        prompts = [str(messages(page)[0]["content"]) for page in pages(harness)]
        assert [prompt.partition("\n")[0] for prompt in prompts][:2] == ["You are another."] * 2
    assert {"chat", "helper", "other"} <= set(names)
    assert (refused.status, "there is no agent 'no'; known: " in str(refused.json["detail"])) == (422, True)


def _agents(harness: Harness) -> Mapping[str, Json]:
    return request(harness.url, "GET", "/api/v1/agent/agents").json
