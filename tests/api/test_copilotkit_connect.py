"""A page of CopilotKit's that loads again (P15): the thread as it stands, the run at work, what the inspector sees."""

import http.client
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import cast
from urllib.parse import urlsplit

import pytest

from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.testing.client import HttpReply, ask, bearer, parse_events, start
from recto.testing.model_server import Answer, Call
from tests.api.copilotkit_client import BASE, events_of, send, types_of
from tests.api.scripted_server import ALICE, BOB, PLAIN, Scripted, scripted_server

TOLD = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
PICK: Json = {"name": "pick", "description": "Pick one", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("connect")) as made:
        yield made


def connect(server: Scripted, thread: str, token: str = ALICE, *, is_single: bool = False, **rest: Json) -> HttpReply:
    body: Json = {"threadId": thread, "runId": new_id(), "messages": [], "tools": [], "context": [], **rest}
    envelope: Json = {"method": "agent/connect", "params": {"agentId": "default"}, "body": body}
    path, sent = ("", envelope) if is_single else ("/agent/default/connect", body)
    return send(server.url, "POST", path, sent, token, accept="text/event-stream")


def snapshot(reply: HttpReply) -> list[Mapping[str, Json]]:
    (found,) = [event for event in events_of(reply) if event["type"] == "MESSAGES_SNAPSHOT"]
    return list(cast("list[Mapping[str, Json]]", found["messages"]))


def talk(server: Scripted, *answers: Answer, tools: Sequence[Json] = ()) -> str:
    server.answers[:] = answers
    body = ask("What is an okapi?", tools=tools)
    server.reader(start(server.url, body, token=ALICE)).wait()
    return str(body["threadId"])


@pytest.mark.parametrize("is_single", [True, False])
def test_P15_a_thread_at_rest_is_told_as_a_snapshot_however_often(server: Scripted, is_single: bool):
    thread = talk(server)
    first, second = (connect(server, thread, is_single=is_single) for _ in range(2))
    assert types_of(first) == types_of(second) == TOLD
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


def test_P5_a_thread_of_somebody_else_is_as_one_that_is_not_there(server: Scripted):
    thread = talk(server)
    assert connect(server, thread, BOB).body == b""
    for what in ("messages", "events", "state"):
        foreign = send(server.url, "GET", f"/threads/{thread}/{what}", token=BOB)
        absent = send(server.url, "GET", f"/threads/{(other := new_id())}/{what}", token=BOB)
        assert (foreign.status, foreign.body.replace(thread.encode(), other.encode())) == (404, absent.body)


def test_P15_a_page_that_loads_in_the_middle_of_a_run_gets_what_was_said_and_the_rest(server: Scripted):
    body = ask("hold on")
    server.begin(body)
    address = urlsplit(server.url)
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)) as connection:
        sent: Json = {"threadId": body["threadId"], "runId": new_id(), "messages": []}
        headers = {"content-type": "application/json", **bearer(ALICE)}
        connection.request("POST", f"{BASE}/agent/default/connect", dump(sent), headers)
        coming = (one.event for one in parse_events(connection.getresponse()))
        started, shown = next(coming), next(coming)
        assert (started["type"], started["runId"]) == ("RUN_STARTED", body["runId"])
        server.go.set()
        rest = list(coming)
    asked, said = cast("list[Mapping[str, Json]]", shown["messages"])
    assert (asked["content"], said["role"]) == ("hold on", "assistant")
    deltas = [str(event["delta"]) for event in rest if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert deltas
    assert str(said["content"]) + "".join(deltas) == PLAIN.text
    assert (rest[0]["type"], rest[-1]["type"]) == ("TEXT_MESSAGE_START", "RUN_FINISHED")


@pytest.mark.parametrize("body", [b"{", {"runId": "r"}, {"threadId": "", "runId": "r"}, {"threadId": "t"}, []])
def test_P15_a_page_that_names_no_thread_is_told_so(server: Scripted, body: Json | bytes):
    assert send(server.url, "POST", "/agent/default/connect", body).status == 422
    assert send(server.url, "POST", "/agent/nobody/connect", body).status == 404


def test_P15_the_inspector_sees_messages_events_and_state(server: Scripted):
    call = Call(name="pick", arguments='{"n":1}', id="c1")
    thread = talk(server, Answer(text="Pick.", calls=(call,)), tools=[PICK])
    messages = cast("list[Mapping[str, Json]]", send(server.url, "GET", f"/threads/{thread}/messages").json["messages"])
    assert [message["role"] for message in messages] == ["user", "assistant"]
    (made,) = cast("list[Mapping[str, Json]]", messages[1]["toolCalls"])
    assert (made["name"], made["args"], messages[1]["content"]) == ("pick", '{"n":1}', "Pick.")
    events = cast("list[Mapping[str, Json]]", send(server.url, "GET", f"/threads/{thread}/events").json["events"])
    assert (events[0]["type"], events[-1]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert [event["toolCallName"] for event in events if event["type"] == "TOOL_CALL_START"] == ["pick"]
    assert send(server.url, "GET", f"/threads/{thread}/state").json == {"state": None}
    body = ask("Count", thread=thread, state={"count": 1})
    server.reader(start(server.url, body, token=ALICE)).wait()
    assert send(server.url, "GET", f"/threads/{thread}/state").json == {"state": {"count": 1}}
