"""Runs that do not go as planned: replies are broken off, clients are late, models count differently."""

import threading
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import cast

import pytest

from recto.conversation.input.take_input import MAX_ID
from recto.conversation.json import Json
from recto.conversation.messages import UserMessage
from recto.models.ports import Usage
from recto.testing.client import RUNS, Reader, ask, request, run, start
from recto.testing.model_server import Answer, Call, Request
from recto.testing.postgres import postgres_server
from tests.end_to_end.harness import Harness, a_note_then_an_answer, log_texts

pytestmark = pytest.mark.full

PICK = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}


def calls_of(harness: Harness, id: str) -> list[Mapping[str, Json]]:
    return cast("list[Mapping[str, Json]]", request(harness.url, "GET", f"{RUNS}/{id}/calls").json["calls"])


def test_P8_a_reply_that_is_cancelled_counts_what_was_said_of_it(tmp_path: Path):
    go = threading.Event()

    def script(made: Request) -> Answer:
        return Answer(text="one two three four five six", hold=go, hold_after=4)

    with Harness(tmp_path, script) as harness, harness.serve():
        id = start(harness.url, ask("hold"))
        Reader(lambda: harness.url, id).wait_for(lambda sent: b"TEXT_MESSAGE_CONTENT" in sent.body)
        request(harness.url, "POST", f"{RUNS}/{id}/cancel")
        Reader(lambda: harness.url, id).wait()
        (call,) = calls_of(harness, id)
        used = cast("Mapping[str, int]", request(harness.url, "GET", f"{RUNS}/{id}").json["usage"])
        metrics = request(harness.url, "GET", "/metrics").body.decode()
        go.set()
    estimate = cast("Mapping[str, int]", call["usage"])
    assert estimate["estimated"] is True
    assert used["inputTokens"] == estimate["inputTokens"] > 10
    assert used["outputTokens"] == estimate["outputTokens"] >= 3
    assert call["firstToken"]
    assert 'recto_model_calls_total{model="compatible:scripted",result="broken_off"} 1.0' in metrics


def test_P8_words_that_wait_to_be_known_as_words_are_kept_when_a_reply_is_broken_off(tmp_path: Path):
    go = threading.Event()
    words = 'Here is an example. ```json {"a": 1'

    def script(made: Request) -> Answer:
        return Answer(text=f"{words} and much more of it", hold=go, hold_after=9)

    with Harness(tmp_path, script) as harness:
        (harness.agent / "AGENT.md").write_text("---\ntool_calling: prompt\n---\nHi.\n", encoding="utf-8")
        with harness.serve():
            asked = ask("hold")
            id = start(harness.url, asked)
            assert harness.model.wait_requests(1)[0].wait_held()
            Reader(lambda: harness.url, id).wait_for(lambda sent: b"TEXT_MESSAGE_CONTENT" in sent.body)
            request(harness.url, "POST", f"{RUNS}/{id}/cancel")
            events = Reader(lambda: harness.url, id).wait()
            go.set()
        said = "".join(str(sent.event.get("delta", "")) for sent in events)
        assert said.startswith("Here is an example. ")
        assert log_texts(harness.log(str(asked["threadId"])))["words"] == [said]


def test_P11_readers_are_told_of_a_call_that_waited_too_long(tmp_path: Path):
    def script(made: Request) -> Answer:
        last = cast("list[Mapping[str, Json]]", made.page["messages"])[-1]
        return Answer(text="Never mind.") if last["role"] == "tool" else Answer(calls=(Call(name="pick", id="c1"),))

    with Harness(tmp_path, script) as harness:
        (harness.agent / "AGENT.md").write_text("---\nlimits: {client_seconds: 0.001}\n---\nHi.\n", encoding="utf-8")
        with harness.serve():
            first = {**ask("pick one"), "tools": [PICK]}
            run(harness.url, first)
            late = {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "the red one"}
            messages = [*cast("list[Json]", first["messages"]), late]
            events = run(harness.url, {**first, "runId": "second", "messages": messages})
    results = [sent.event for sent in events if sent.event["type"] == "TOOL_CALL_RESULT"]
    assert [(event["toolCallId"], "in time" in str(event["content"])) for event in results] == [("c1", True)]
    assert events[-1].event["type"] == "RUN_FINISHED"


def test_P11_a_client_that_goes_on_without_naming_its_tools_still_owes_their_results(tmp_path: Path):
    def script(made: Request) -> Answer:
        messages = cast("list[Mapping[str, Json]]", made.page["messages"])
        results = [str(message["content"]) for message in messages if message["role"] == "tool"]
        calls = (Call(name="pick", id="c1"), Call(name="pick", id="c2"))
        return Answer(text=f"You picked {' and '.join(results)}.") if len(results) == 2 else Answer(calls=calls)

    with Harness(tmp_path, script) as harness, harness.serve():
        first = {**ask("pick two"), "tools": [PICK]}
        run(harness.url, first)
        asked = cast("list[Json]", first["messages"])
        red = {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "red"}
        blue = {"id": "t2", "role": "tool", "toolCallId": "c2", "content": "blue"}
        second = run(harness.url, {**first, "runId": "second", "messages": [*asked, red], "tools": []})
        third = run(harness.url, {**first, "runId": "third", "messages": [*asked, blue], "tools": []})
    assert b'"c2"' in second[-1].body
    assert "".join(str(sent.event.get("delta", "")) for sent in third) == "You picked red and blue."


def test_R13_what_one_model_said_of_its_tokens_says_nothing_to_another(tmp_path: Path):
    def script(made: Request) -> Answer:
        return Answer(text="Well.", usage=Usage(input=127_000 if made.page["model"] == "scripted" else 10, output=1))

    with Harness(tmp_path, script) as harness:
        other = harness.agents / "other"
        other.mkdir()
        (other / "AGENT.md").write_text("---\nmodel: compatible:small\n---\nYou are another.\n", encoding="utf-8")
        with harness.serve():
            first = ask("hello " * 800)
            run(harness.url, first)
            second = {**ask("and you?"), "threadId": first["threadId"], "forwardedProps": {"agent": "other"}}
            run(harness.url, second)
        assert [made.page["model"] for made in harness.model.requests] == ["scripted", "small"]


def test_X4_a_message_with_a_name_no_index_can_hold_is_stored_under_a_name_of_ours(tmp_path: Path):
    with postgres_server() as postgres, Harness(tmp_path, a_note_then_an_answer) as harness:
        harness.database = postgres.url(postgres.create_database())
        with harness.serve():
            asked = ask("hello")
            message = {"id": token_hex(6_000), "role": "user", "content": "hello"}
            events = run(harness.url, {**asked, "messages": [message]})
        assert events[-1].event["type"] == "RUN_FINISHED"
        (user,) = [entry for entry in harness.log(str(asked["threadId"])) if isinstance(entry, UserMessage)]
        assert 0 < len(user.id) <= MAX_ID


def test_C2_a_limit_beyond_the_calendar_is_refused_at_the_start(tmp_path: Path):
    with Harness(tmp_path, a_note_then_an_answer) as harness:
        (harness.agent / "AGENT.md").write_text("---\nlimits: {seconds: 1000000000000}\n---\nHi.\n", encoding="utf-8")
        with pytest.raises(RuntimeError, match="31536000"), harness.serve():
            pass
