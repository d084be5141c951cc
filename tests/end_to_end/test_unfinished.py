"""Runs with interrupted replies, and with models that count differently."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.models.ports import Usage
from recto.testing.model_server import Answer, Request
from tests.end_to_end.harness import Harness
from tests.support.client import RUNS, Reader, ask, request, run, start

pytestmark = pytest.mark.full


def calls_of(harness: Harness, id: str) -> list[Mapping[str, Json]]:
    return cast("list[Mapping[str, Json]]", request(harness.url, "GET", f"{RUNS}/{id}/calls").json["calls"])


def test_P8_a_reply_that_is_cancelled_counts_what_was_said_of_it(tmp_path: Path):
    go = threading.Event()

    answer = Answer(text="one two three four five six", hold=go, hold_after=4)
    with Harness(tmp_path, lambda _: answer) as harness, harness.serve():
        id = start(harness.url, ask("hold"))
        Reader(lambda: harness.url, id).wait_for(lambda received: b"TEXT_MESSAGE_CONTENT" in received.body)
        request(harness.url, "POST", f"{RUNS}/{id}/cancel")
        Reader(lambda: harness.url, id).wait()
        (call,) = calls_of(harness, id)
        usage = cast("Mapping[str, int]", request(harness.url, "GET", f"{RUNS}/{id}").json["usage"])
        metrics = request(harness.url, "GET", "/metrics").body.decode()
        go.set()
    estimate = cast("Mapping[str, int]", call["usage"])
    assert estimate["estimated"] is True
    assert usage["inputTokens"] == estimate["inputTokens"] > 10
    assert usage["outputTokens"] == estimate["outputTokens"] >= 3
    assert call["firstToken"]
    assert 'recto_model_calls_total{model="compatible:scripted",result="broken_off"} 1.0' in metrics


def test_R13_what_one_model_said_of_its_tokens_says_nothing_to_another(tmp_path: Path):
    def script(model_request: Request) -> Answer:
        return Answer(
            text="Well.", usage=Usage(input=127_000 if model_request.page["model"] == "scripted" else 10, output=1)
        )

    with Harness(tmp_path, script) as harness:
        other = harness.agents / "other"
        other.mkdir()
        (other / "AGENT.md").write_text("---\nmodel: compatible:small\n---\nYou are another.\n", encoding="utf-8")
        with harness.serve():
            first = ask("hello " * 800)
            run(harness.url, first)
            second = {**ask("and you?"), "threadId": first["threadId"], "forwardedProps": {"agent": "other"}}
            run(harness.url, second)
        assert [model_request.page["model"] for model_request in harness.model.requests] == ["scripted", "small"]
