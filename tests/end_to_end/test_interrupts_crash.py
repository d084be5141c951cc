"""P11, X4: a server killed around asking, deciding and acting: nothing is made that nobody agreed to, nothing twice."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, Request
from tests.end_to_end.harness import Harness
from tests.support.client import Reader, ReceivedEvent, ask, request, start

pytestmark = pytest.mark.full

SENT_TEXT = "noted hello"
LOST_TEXT = "send was started and then interrupted"
# Where the server dies while it asks.
ASKING = ["asking", "asked"]
# Where it dies after a person agreed, and what then became of the call.
DECIDING = [("entered", SENT_TEXT), ("tools_started", LOST_TEXT), ("tool_acted", LOST_TEXT), ("tool_ended", SENT_TEXT)]


def a_message_then_an_answer(model_request: Request) -> Answer:
    messages = cast("list[Mapping[str, Json]]", model_request.page["messages"])
    if messages[-1]["role"] == "tool":
        return Answer(text="It is done.")
    return Answer(text="One moment.", calls=(Call(name="send", arguments='{"text": "hello"}', id="s1"),))


def interrupts(harness: Harness, thread: str) -> list[str]:
    interrupts = request(harness.url, "GET", f"/api/v1/agent/threads/{thread}").json["interrupts"]
    return [str(one["id"]) for one in cast("list[Mapping[str, Json]]", interrupts)]


def agreeing(thread: str, id: str, *, approved: bool = True) -> dict[str, Json]:
    item = {"interruptId": id, "status": "resolved", "payload": {"approved": approved}}
    return {"threadId": thread, "runId": new_id(), "protocolVersion": "1.0", "messages": [], "resume": [item]}


def outcome(events: Sequence[ReceivedEvent]) -> Json:
    assert [received.number for received in events] == list(range(1, len(events) + 1))
    return cast("Mapping[str, Json]", events[-1].event["outcome"])["type"]


def results(events: Sequence[ReceivedEvent]) -> list[str]:
    return [str(received.event["content"]) for received in events if received.event["type"] == "TOOL_CALL_RESULT"]


@pytest.mark.parametrize("point", ASKING)
def test_X4_a_server_killed_while_it_asks_asks_once(point: str, tmp_path: Path):
    with Harness(tmp_path, a_message_then_an_answer) as harness:
        body = ask("Tell them.")
        harness.killed(body, point)
        with harness.serve():
            # Lost before it was admitted, or not: the same request is the same run.
            events = Reader(lambda: harness.url, start(harness.url, body)).wait()
            assert outcome(events) == "interrupt"
            [id] = interrupts(harness, str(body["threadId"]))
            assert harness.notes == []
            next_run = agreeing(str(body["threadId"]), id)
            events = Reader(lambda: harness.url, start(harness.url, next_run)).wait()
            assert (results(events), harness.notes) == ([SENT_TEXT], ["hello"])


def ask_and_agree(harness: Harness, body: Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
    """Run until the call waits. Return its interrupt, and the run that approves it."""
    with harness.serve():
        Reader(lambda: harness.url, start(harness.url, body)).wait()
        [id] = interrupts(harness, str(body["threadId"]))
    return id, agreeing(str(body["threadId"]), id)


@pytest.mark.parametrize(("point", "text"), DECIDING)
def test_X4_a_server_killed_after_a_person_agreed_acts_once(point: str, text: str, tmp_path: Path):
    with Harness(tmp_path, a_message_then_an_answer) as harness:
        body = ask("Tell them.")
        thread, (id, next_run) = str(body["threadId"]), ask_and_agree(harness, body)
        harness.killed(next_run, point)
        with harness.serve():
            events = Reader(lambda: harness.url, start(harness.url, next_run)).wait()
            assert outcome(events) == "success"
            [result] = results(events)
            assert result.startswith(text)
            # Lost before it acted, or after: never twice.
            assert harness.notes in ([["hello"]] if text == SENT_TEXT else [[], ["hello"]])
            again = request(harness.url, "POST", "/api/v1/agent/runs", agreeing(thread, id))
            assert (again.status, again.json["runId"]) == (202, next_run["runId"])
            rejection = request(harness.url, "POST", "/api/v1/agent/runs", agreeing(thread, id, approved=False))
            assert rejection.status == 409
            assert interrupts(harness, thread) == []


def test_P8_an_approval_of_a_run_that_was_cancelled_before_it_acted_is_spent(tmp_path: Path):
    with Harness(tmp_path, a_message_then_an_answer) as harness:
        body = ask("Tell them.")
        thread, (id, next_run) = str(body["threadId"]), ask_and_agree(harness, body)
        harness.killed(next_run, "entered")
        # Nobody works on it there.
        with harness.serve(runs=0):
            request(harness.url, "POST", f"/api/v1/agent/runs/{next_run['runId']}/cancel")
        with harness.serve():
            assert outcome(Reader(lambda: harness.url, str(next_run["runId"])).wait()) == "cancelled"
            assert interrupts(harness, thread) == []
            events = Reader(lambda: harness.url, start(harness.url, {**body, "runId": new_id()})).wait()
            [new] = interrupts(harness, thread)
            assert (outcome(events), new != id, harness.notes) == ("interrupt", True, [])
            events = Reader(lambda: harness.url, start(harness.url, agreeing(thread, new))).wait()
            assert (results(events), harness.notes) == ([SENT_TEXT], ["hello"])
