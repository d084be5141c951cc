"""A page of CopilotKit's that loads again (P15): the thread as it stands, the run at work, what the inspector sees."""

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.api.copilotkit_client import events_of, send, types_of
from tests.api.scripted_server import PLAIN, Scripted
from tests.support.client import HttpReply, ask, start

EXPECTED_EVENTS = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
PICK: Json = {"name": "pick", "description": "Pick one", "parameters": {"type": "object"}}


def connect(server: Scripted, thread: str, *, is_single: bool = False) -> HttpReply:
    body: Json = {"threadId": thread, "runId": new_id(), "messages": [], "tools": [], "context": []}
    envelope: Json = {"method": "agent/connect", "params": {"agentId": "default"}, "body": body}
    path, message = ("", envelope) if is_single else ("/agent/default/connect", body)
    return send(server, "POST", path, message, accept="text/event-stream")


def snapshot(reply: HttpReply) -> list[Mapping[str, Json]]:
    (snapshot,) = [event for event in events_of(reply) if event["type"] == "MESSAGES_SNAPSHOT"]
    return list(cast("list[Mapping[str, Json]]", snapshot["messages"]))


def talk(server: Scripted, *answers: Answer, tools: Sequence[Json] = ()) -> str:
    server.answers[:] = answers
    body = ask("What is an okapi?", tools=tools)
    server.reader(start(server.url, body, token=server.token)).wait()
    return str(body["threadId"])


@pytest.mark.parametrize("is_single", [True, False])
def test_P15_a_thread_at_rest_is_told_as_a_snapshot_however_often(server: Scripted, is_single: bool):
    thread = talk(server)
    first, second = (connect(server, thread, is_single=is_single) for _ in range(2))
    assert types_of(first) == types_of(second) == EXPECTED_EVENTS
    assert snapshot(first) == snapshot(second)
    assert [(row["role"], row["content"]) for row in snapshot(first)] == [
        ("user", "What is an okapi?"),
        ("assistant", PLAIN.text),
    ]
    assert [run["status"] for run in server.rows(f"/threads/{thread}/runs", "runs")] == ["finished"]


def test_P15_a_thread_that_is_not_there_is_an_empty_stream_and_is_not_made(server: Scripted):
    for thread in (new_id(), "any name"):
        reply = connect(server, thread)
        assert (reply.status, reply.headers["content-type"], reply.body) == (200, "text/event-stream", b"")
        assert connect(server, thread).body == b""


def test_P15_the_inspector_sees_messages_events_and_state(server: Scripted):
    call = Call(name="pick", arguments='{"n":1}', id="c1")
    thread = talk(server, Answer(text="Pick.", calls=(call,)), tools=[PICK])
    messages = cast("list[Mapping[str, Json]]", send(server, "GET", f"/threads/{thread}/messages").json["messages"])
    assert [message["role"] for message in messages] == ["user", "assistant"]
    (tool_call,) = cast("list[Mapping[str, Json]]", messages[1]["toolCalls"])
    assert (tool_call["name"], tool_call["args"], messages[1]["content"]) == ("pick", '{"n":1}', "Pick.")
    events = cast("list[Mapping[str, Json]]", send(server, "GET", f"/threads/{thread}/events").json["events"])
    assert (events[0]["type"], events[-1]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert [event["toolCallName"] for event in events if event["type"] == "TOOL_CALL_START"] == ["pick"]
    assert send(server, "GET", f"/threads/{thread}/state").json == {"state": None}
    body = ask("Count", thread=thread, state={"count": 1})
    server.reader(start(server.url, body, token=server.token)).wait()
    assert send(server, "GET", f"/threads/{thread}/state").json == {"state": {"count": 1}}
