"""P1, P4, P7, P8 over real HTTP: a server process, a demo model, and a scripted one that can be held up."""

import http.client
import re
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
from ag_ui.core import events as official
from pydantic import TypeAdapter

from recto.conversation.events import ends_run
from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.testing.client import (
    RUNS,
    TOKEN,
    HttpReply,
    Reader,
    SentEvent,
    ask,
    bearer,
    parse_events,
    read_events,
    request,
    start,
)
from recto.testing.model_server import Answer, ModelServer, Request
from recto.testing.process import ServerProcess

PARSER: TypeAdapter[official.Event] = TypeAdapter(official.Event)
LIMIT = 262_144
SUM = "What is 12*7?"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server with the demo model."""
    with ServerProcess.serve(tmp_path_factory.mktemp("demo"), {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat"}) as server:
        yield server.url


@dataclass(frozen=True, kw_only=True)
class Slow:
    """A server whose model stops in the middle of an answer that has `hold` in its question, until let go."""

    url: str
    model: ModelServer
    go: threading.Event

    def begin(self, protocol: str | None = "1.0") -> tuple[str, Request]:
        """A run that stands in the middle of its answer, and the request of its model."""
        before = len(self.model.requests)
        self.go.clear()
        run = start(self.url, {**ask("hold"), "protocolVersion": protocol})
        made = self.model.wait_requests(before + 1)[before]
        assert made.wait_held()
        return run, made


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Generator[Slow]:
    go = threading.Event()

    def script(made: Request) -> Answer:
        held = go if b"hold" in made.body else None
        return Answer(text="one two three four five six", hold=held, hold_after=4)

    with ModelServer(script) as model:
        settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_HEARTBEAT_SECONDS": "0.1"}
        with ServerProcess.serve(tmp_path_factory.mktemp("slow"), settings) as server:
            yield Slow(url=server.url, model=model, go=go)
        go.set()


def connect(url: str) -> http.client.HTTPConnection:
    address = urlsplit(url)
    return http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)


def post(url: str, body: object, **headers: str) -> HttpReply:
    return request(url, "POST", RUNS, body, **headers)


def get(url: str, path: str, **headers: str) -> HttpReply:
    return request(url, "GET", f"{RUNS}/{path}", **headers)


def finished(url: str, words: str = SUM) -> tuple[str, list[SentEvent]]:
    """A run that has ended, and its events."""
    run = start(url, ask(words))
    return run, list(read_events(url, run))


def events_of(reply: HttpReply) -> list[SentEvent]:
    return list(parse_events(line + b"\n" for line in reply.body.split(b"\n")))


def assert_problem(reply: HttpReply, status: int, code: str, words: str) -> None:
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
    assert reply.json.keys() == {"type", "title", "status", "detail", "message", "code", "errors"}
    assert (reply.json["status"], reply.json["code"]) == (status, code)
    assert words in str(reply.json["detail"])


# Admission


def test_P1_an_admitted_run_is_answered_with_its_ids_and_its_time_in_utc(url: str):
    body = ask(SUM)
    reply = post(url, body)
    assert (reply.status, reply.headers["content-type"]) == (202, "application/json")
    assert list(reply.json) == ["taskId", "threadId", "runId", "created"]
    assert (reply.json["threadId"], reply.json["runId"]) == (body["threadId"], body["runId"])
    created = str(reply.json["created"])
    assert re.fullmatch(TIME, created)
    assert abs(datetime.fromisoformat(created) - datetime.now(UTC)) < timedelta(minutes=1)


def test_P1_a_thread_is_the_same_in_any_case(url: str):
    thread = new_id()
    assert post(url, ask(SUM, thread=thread.upper())).json["threadId"] == thread


def test_P1_a_stream_is_ended_by_the_end_of_its_run(url: str):
    body = ask(SUM)
    reply = post(url, body, accept="text/event-stream")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
    assert reply.headers["recto-task-id"] == get(url, str(body["runId"])).json["taskId"]
    assert b"\r" not in reply.body
    assert re.fullmatch(rb"(id: \d+\ndata: [^\n]+\n\n|:\n\n)+", reply.body)
    events = events_of(reply)
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [ends_run(event.body) for event in events] == [False] * (len(events) - 1) + [True]


def test_P1_every_event_is_one_the_official_package_reads(url: str):
    _, events = finished(url, "What is 12*7, and what time is it?")
    kinds = {PARSER.validate_json(event.body).type.value for event in events}
    assert {"RUN_STARTED", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_RESULT", "RUN_FINISHED"} <= kinds
    assert not [event for event in events if b":null" in event.body]


def test_P4_the_same_request_again_is_the_same_run(url: str):
    body = ask(SUM)
    first = post(url, body)
    shuffled = dict(reversed(body.items()))
    again = [post(url, other) for other in (body, shuffled, dump(body).replace(b'":', b'" : '))]
    assert [reply.body for reply in again] == [first.body] * 3
    assert [reply.status for reply in again] == [202] * 3
    list(read_events(url, str(body["runId"])))
    assert get(url, str(body["runId"])).json["calls"] == 2
    assert events_of(post(url, body, accept="text/event-stream")) == list(read_events(url, str(body["runId"])))


@pytest.mark.full
def test_P4_the_same_request_is_the_same_run_though_its_agent_is_gone(tmp_path: Path):
    (tmp_path / "agents" / "guest").mkdir(parents=True)
    (tmp_path / "agents" / "guest" / "AGENT.md").write_text("You help.\n", encoding="utf-8")
    body = {**ask(SUM), "forwardedProps": {"agent": "guest"}}
    with ServerProcess.serve(tmp_path / "data", {}, "--agents", str(tmp_path / "agents")) as server:
        first = post(server.url, body)
        list(read_events(server.url, str(body["runId"])))
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        again = post(server.url, body)
        assert (again.status, again.body) == (202, first.body)
        assert_problem(post(server.url, {**body, "context": []}), 409, "conflict", f"Run '{body['runId']}'")
        assert_problem(post(server.url, {**body, "runId": new_id()}), 422, "invalid_input", "forwardedProps.agent")


@pytest.mark.full
def test_P4_the_same_request_is_the_same_run_though_its_tools_would_be_refused_now(tmp_path: Path):
    body = ask(SUM, tools=[{"name": "look"}, {"name": "listen"}])
    with ServerProcess.serve(tmp_path, {}) as server:
        first = post(server.url, body)
    with ServerProcess.serve(tmp_path, {"RECTO_CLIENT_TOOLS": "1"}) as server:
        again = post(server.url, body)
        assert (again.status, again.body) == (202, first.body)
        assert_problem(post(server.url, {**body, "runId": new_id()}), 422, "invalid_input", "tools: are 2")


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("application/json, text/event-stream;q=0", "application/json"),
        ("application/json, text/event-stream; q=0.0", "application/json"),
        ("text/event-stream;q=0.5, application/json", "application/json"),
        ("text/event-streams", "application/json"),
        ("*/*", "application/json"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("Text/Event-Stream; charset=utf-8; Q=0.5, application/json;q=0.1", "text/event-stream"),
        ("text/event-stream;q=much", "text/event-stream"),
    ],
)
def test_P1_a_stream_is_answered_to_who_accepts_one_and_does_not_rather_have_json(url: str, accept: str, media: str):
    assert post(url, ask(SUM), accept=accept).headers["content-type"] == media


WRONG: list[tuple[Mapping[str, Json], str]] = [
    ({"threadId": "no-uuid"}, "threadId"),
    ({"threadId": "6f1c2c7e7f0a4a529f0e0d3e8f5a1b11"}, "threadId"),
    ({"threadId": "{6f1c2c7e-7f0a-4a52-9f0e-0d3e8f5a1b11}"}, "threadId"),
    ({"threadId": 7}, "threadId"),
    ({"runId": ""}, "runId"),
    ({"runId": "r" * 129}, "runId"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": [{"id": "a", "role": "assistant", "content": "Hi."}]}, "messages"),
    ({"messages": [{"id": "a", "role": "user", "content": 7}]}, "messages[0]"),
    ({"tools": [{}]}, "tools[0].name"),
    ({"threadId": "6f1c2c7e-7f0a-4a52-9f0e-0d3e8f5a1b1\0"}, "threadId"),
    ({"runId": "a\0"}, "runId: holds the character U+0000"),
    ({"messages": [{"id": "a\0", "role": "user", "content": "Hi."}]}, "messages[0].id"),
    ({"messages": [{"id": "a", "role": "user", "content": "Hi.\0"}]}, "messages[0].content"),
    ({"messages": [{"id": "a", "role": "user", "content": [{"type": "text", "text": "\0"}]}]}, "content[0].text"),
    ({"context": [{"description": "\0", "value": ""}]}, "context[0].description"),
    ({"forwardedProps": {"a": {"\0": 1}}}, "forwardedProps.a"),
    ({"forwardedProps": "x"}, "forwardedProps"),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_P2_a_wrong_field_is_refused_by_its_name(url: str, change: Mapping[str, Json], words: str):
    assert_problem(post(url, {**ask(SUM), **change}), 422, "invalid_input", words)


def test_P2_an_escape_that_only_looks_like_the_character_that_cannot_be_stored_is_taken(url: str):
    assert post(url, ask("the text \\u0000 is five letters and a backslash")).status == 202


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 5_000, b'{"a":NaN}', b"7", b"[]", b"null"])
def test_P2_a_body_that_is_no_json_object_is_refused(url: str, body: bytes):
    assert_problem(post(url, body), 422, "invalid_input", "")


def test_P2_a_body_of_just_the_limit_is_taken_and_one_byte_more_is_not(url: str):
    body = dump(ask(SUM))
    most = body.ljust(LIMIT)
    assert post(url, most).status == 202
    assert_problem(post(url, most + b" "), 413, "too_large", "RunAgentInput payload exceeds size limit")


def chunked(url: str, body: bytes) -> HttpReply:
    connection = connect(url)
    pieces = (body[at : at + 8_192] for at in range(0, len(body), 8_192))
    headers = {"transfer-encoding": "chunked", "content-type": "application/json"} | bearer(TOKEN)
    connection.request("POST", RUNS, pieces, headers, encode_chunked=True)
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    reply = HttpReply(status=answer.status, headers=headers, body=answer.read())
    connection.close()
    return reply


# Asking about a run


def test_P8_a_run_is_found_by_the_clients_name_and_by_the_servers_id(url: str):
    body = ask(SUM)
    task = start(url, body)
    events = list(read_events(url, task))
    by_task, by_name = get(url, task), get(url, str(body["runId"]))
    assert by_task.json == by_name.json
    problem = {name: by_task.json[name] for name in ("taskId", "runId", "status", "outcome", "error", "lastEventId")}
    assert problem == {
        "taskId": task,
        "runId": body["runId"],
        "status": "finished",
        "outcome": "done",
        "error": None,
        "lastEventId": len(events),
    }
    usage = cast("list[Mapping[str, Json]]", events[-1].event["usage"])
    assert by_task.json["usage"] == usage[0]
    assert [name for name in ("created", "started", "ended") if not re.fullmatch(TIME, str(by_task.json[name]))] == []


def test_P8_a_name_that_cannot_be_stored_is_nobodys(url: str):
    assert_problem(get(url, "nobody%00"), 404, "not_found", "There is no run 'nobody")


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "/events"), ("POST", "/cancel")])
def test_P8_a_run_nobody_knows_is_not_found(url: str, method: str, path: str):
    assert_problem(request(url, method, f"{RUNS}/nobody{path}"), 404, "not_found", "There is no run 'nobody'")


# Events


def test_P7_events_come_again_from_every_number_in_the_same_bytes(url: str):
    run, events = finished(url)
    for after in range(len(events) + 2):
        by_header = get(url, f"{run}/events?protocolVersion=1.0", last_event_id=str(after))
        by_query = get(url, f"{run}/events?protocolVersion=1.0&after={after}")
        assert by_header.body == by_query.body
        assert events_of(by_header) == events[after:]


def test_P7_while_a_run_is_at_work_a_reader_that_comes_back_at_any_number_gets_exactly_the_rest(slow: Slow):
    run, _ = slow.begin()
    first = Reader(lambda: slow.url, run)
    said = first.wait_for(lambda sent: b"TEXT_MESSAGE_CONTENT" in sent.body)
    streams = [read_events(slow.url, run, after) for after in range(said.number + 1)]
    # Each has a connection and what is there already before the run goes on.
    opened = [next(stream) for stream in streams[:-1]]
    slow.go.set()
    whole = list(first.wait())
    assert [[head, *stream] for head, stream in zip(opened, streams[:-1], strict=True)] == [
        whole[after:] for after in range(said.number)
    ]
    assert list(streams[-1]) == whole[said.number :]
    assert list(read_events(slow.url, run)) == whole


def test_P7_a_reader_that_goes_away_is_no_cancel(slow: Slow):
    run, made = slow.begin()
    stream = read_events(slow.url, run)
    next(stream)
    cast("Generator[SentEvent]", stream).close()
    slow.go.set()
    assert list(read_events(slow.url, run))[-1].event["type"] == "RUN_FINISHED"
    assert not made.disconnected
    assert get(slow.url, run).json["outcome"] == "done"


def test_P7_a_silent_stream_has_comments_as_heartbeats(slow: Slow):
    run, _ = slow.begin()
    newest = Reader(lambda: slow.url, run).wait_for(lambda sent: b"TEXT_MESSAGE_CONTENT" in sent.body)
    connection = connect(slow.url)
    connection.request("GET", f"{RUNS}/{run}/events", headers={"last-event-id": str(newest.number)} | bearer(TOKEN))
    answer = connection.getresponse()
    lines = iter(answer)
    assert [next(line for line in lines if line.startswith(b":")) for _ in range(3)] == [b":\n"] * 3
    slow.go.set()
    assert b"RUN_FINISHED" in answer.read()
    connection.close()


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5", "²", "0x1", "1 2", "1" * 5_000])
def test_P7_a_number_that_is_none_is_refused(url: str, wrong: str):
    run, _ = finished(url)
    path = wrong.replace("²", "%C2%B2").replace(" ", "%20")
    assert_problem(get(url, f"{run}/events?after={path}"), 422, "invalid_input", "Last-Event-ID")
    if wrong.isascii():
        assert_problem(get(url, f"{run}/events", last_event_id=wrong), 422, "invalid_input", "Last-Event-ID")


def test_P7_a_number_behind_the_end_gets_nothing_and_waits_for_nothing(url: str):
    run, _ = finished(url)
    assert get(url, f"{run}/events?after=99999999999").body == b""


def test_P7_a_number_a_run_under_way_has_not_come_to_is_refused(slow: Slow):
    thread = new_id()
    slow.go.clear()
    run, queued = start(slow.url, ask("hold", thread=thread)), start(slow.url, ask("later", thread=thread))
    said = Reader(lambda: slow.url, run).wait_for(lambda sent: b"TEXT_MESSAGE_CONTENT" in sent.body)
    words = f"is 99, but the newest event of this run is number {said.number}"
    assert_problem(get(slow.url, f"{run}/events", last_event_id="99"), 422, "invalid_input", words)
    assert_problem(get(slow.url, f"{queued}/events?after=1"), 422, "invalid_input", "is number 0")
    slow.go.set()
    assert get(slow.url, f"{queued}/events").status == 200


def test_P7_the_dialect_of_a_run_is_the_same_however_its_field_is_spelled(url: str):
    body = {name: value for name, value in ask(SUM).items() if name != "protocolVersion"}
    said = post(url, {**body, "protocol_version": "1.0"}, accept="text/event-stream").body
    assert b'"outcome"' in said
    assert get(url, f"{body['runId']}/events").body == said


def test_P7_the_dialect_is_the_one_asked_for_else_the_one_of_the_run(url: str):
    new, events = finished(url)
    old = start(url, {name: value for name, value in ask(SUM).items() if name != "protocolVersion"})
    list(read_events(url, old))
    assert b'"outcome"' in get(url, f"{new}/events").body
    assert b'"outcome"' not in get(url, f"{old}/events").body
    assert b'"outcome"' in get(url, f"{old}/events?protocolVersion=1.0").body
    older = events_of(get(url, f"{new}/events?protocolVersion=0.9"))
    assert older[:-1] == events[:-1]
    assert (older[-1].number, older[-1].event.keys()) == (events[-1].number, {"type", "threadId", "runId"})


# Cancelling


def test_P8_a_cancel_ends_the_model_call_at_once_and_keeps_what_was_said(slow: Slow):
    run, made = slow.begin()
    reader = Reader(lambda: slow.url, run)
    reader.wait_for(lambda sent: b"TEXT_MESSAGE_CONTENT" in sent.body)
    first = request(slow.url, "POST", f"{RUNS}/{run}/cancel")
    assert first.status == 200
    assert made.wait_disconnected()
    events = reader.wait()
    assert events[-1].event["outcome"] == {"type": "cancelled"}
    assert events[-2].event["type"] == "TEXT_MESSAGE_END"
    problem = get(slow.url, run).json
    assert (problem["status"], problem["outcome"], problem["error"]) == ("cancelled", "cancelled", None)
    again = request(slow.url, "POST", f"{RUNS}/{run}/cancel")
    assert (again.status, again.json) == (200, problem)
    assert list(read_events(slow.url, run)) == list(events)


def test_P8_older_clients_are_told_of_a_cancel_by_an_error(slow: Slow):
    run, _ = slow.begin(protocol=None)
    request(slow.url, "POST", f"{RUNS}/{run}/cancel")
    events = events_of(get(slow.url, f"{run}/events"))
    assert events[-1].event == {"type": "RUN_ERROR", "message": "The run was cancelled.", "code": "cancelled"}
    newer = list(read_events(slow.url, run))
    assert [event.number for event in newer] == [event.number for event in events]
    assert newer[:-1] == events[:-1]


def test_P8_a_run_that_waits_for_its_thread_is_cancelled_where_it_waits(slow: Slow):
    thread = new_id()
    slow.go.clear()
    first, second = start(slow.url, ask("hold", thread=thread)), start(slow.url, ask("later", thread=thread))
    assert get(slow.url, second).json["status"] == "queued"
    reader = Reader(lambda: slow.url, second)
    problem = request(slow.url, "POST", f"{RUNS}/{second}/cancel")
    assert (problem.json["status"], problem.json["lastEventId"]) == ("cancelled", 2)
    assert [event.event["type"] for event in reader.wait()] == ["RUN_STARTED", "RUN_FINISHED"]
    assert get(slow.url, first).json["status"] == "running"
    slow.go.set()
    assert list(read_events(slow.url, first))[-1].event["outcome"] == {"type": "success"}


def test_P8_a_run_that_has_ended_is_not_changed_by_a_cancel(url: str):
    run, events = finished(url)
    before = get(url, run).json
    assert request(url, "POST", f"{RUNS}/{run}/cancel").json == before
    assert list(read_events(url, run)) == events


# Health
