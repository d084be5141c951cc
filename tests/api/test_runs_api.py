"""P1, P4, P7, P8 over real HTTP: a server process, and a scripted model that can be held up."""

import http.client
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import cast
from urllib.parse import urlsplit

import pytest

from recto.conversation.events import ends_run
from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.api.scripted_server import Scripted
from tests.support.client import RUNS, HttpReply, ReceivedEvent, ask, bearer, parse_events, read_events, request, start

SUM = "What is 12*7?"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def get(server: Scripted, path: str, **headers: str) -> HttpReply:
    return request(server.url, "GET", f"{RUNS}/{path}", token=server.token, **headers)


def cancel(server: Scripted, run: str) -> HttpReply:
    return request(server.url, "POST", f"{RUNS}/{run}/cancel", token=server.token)


def read(server: Scripted, run: str, after: int = 0) -> Iterator[ReceivedEvent]:
    return read_events(server.url, run, after, token=server.token)


def finished(server: Scripted, *answers: Answer) -> tuple[str, list[ReceivedEvent]]:
    """A run that has ended, and its events."""
    body = ask(SUM)
    server.play(body, *answers)
    return str(body["runId"]), list(read(server, str(body["runId"])))


def events_of(reply: HttpReply) -> list[ReceivedEvent]:
    return list(parse_events(line + b"\n" for line in reply.body.split(b"\n")))


def assert_problem(reply: HttpReply, status: int, code: str, words: str) -> None:
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
    assert reply.json.keys() == {"type", "title", "status", "detail", "message", "code", "errors"}
    assert (reply.json["status"], reply.json["code"]) == (status, code)
    assert words in str(reply.json["detail"])


def test_P1_an_admitted_run_is_answered_with_its_ids_and_its_time_in_utc(server: Scripted):
    body, before = ask(SUM), datetime.now(UTC).replace(microsecond=0)
    reply = server.post(body)
    assert (reply.status, reply.headers["content-type"]) == (202, "application/json")
    assert list(reply.json) == ["taskId", "threadId", "runId", "created"]
    assert (reply.json["threadId"], reply.json["runId"]) == (body["threadId"], body["runId"])
    created = str(reply.json["created"])
    assert re.fullmatch(TIME, created)
    assert before <= datetime.fromisoformat(created) <= datetime.now(UTC)


def test_P1_a_stream_is_ended_by_the_end_of_its_run(server: Scripted):
    body = ask(SUM)
    reply = server.post(body, accept="text/event-stream")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
    assert reply.headers["recto-task-id"] == get(server, str(body["runId"])).json["taskId"]
    assert b"\r" not in reply.body
    assert re.fullmatch(rb"(id: \d+\ndata: [^\n]+\n\n|:\n\n)+", reply.body)
    events = events_of(reply)
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [ends_run(event.body) for event in events] == [False] * (len(events) - 1) + [True]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("application/json, text/event-stream; q=0.0", "application/json"),
        ("text/event-stream;q=0.5, application/json", "application/json"),
        ("text/event-streams", "application/json"),
        ("*/*", "application/json"),
        ("Text/Event-Stream; charset=utf-8; Q=0.5, application/json;q=0.1", "text/event-stream"),
        ("text/event-stream;q=much", "text/event-stream"),
    ],
)
def test_P1_a_stream_is_answered_to_who_accepts_one_and_does_not_rather_have_json(
    server: Scripted, accept: str, media: str
):
    assert server.post(ask(SUM), accept=accept).headers["content-type"] == media


def test_P8_a_run_is_found_by_the_clients_name_and_by_the_servers_id(server: Scripted):
    body = ask(SUM)
    task = start(server.url, body, token=server.token)
    events = list(read(server, task))
    run_row = get(server, task).json
    assert run_row == get(server, str(body["runId"])).json
    names = ("taskId", "runId", "status", "outcome", "error", "lastEventId")
    assert [run_row[name] for name in names] == [task, body["runId"], "finished", "done", None, len(events)]
    assert [name for name in ("created", "started", "ended") if not re.fullmatch(TIME, str(run_row[name]))] == []
    (usage,) = cast("list[Mapping[str, Json]]", events[-1].event["usage"])
    assert run_row["usage"] == usage
    # Its model has no price that anybody knows.
    assert not {"price", "currency"} & usage.keys()


def test_P7_a_reader_that_goes_away_is_no_cancel(server: Scripted):
    run, model_request = server.begin(ask("hold"))
    stream = read(server, run)
    next(stream)
    cast("Generator[ReceivedEvent]", stream).close()
    server.go.set()
    assert list(read(server, run))[-1].event["type"] == "RUN_FINISHED"
    assert not model_request.disconnected
    assert get(server, run).json["outcome"] == "done"


def test_P7_a_silent_stream_has_comments_as_heartbeats(server: Scripted):
    run, _ = server.begin(ask("hold"))
    newest = server.reader(run).wait_for(lambda received: b"TEXT_MESSAGE_CONTENT" in received.body)
    address = urlsplit(server.url)
    headers = {"last-event-id": str(newest.number), **bearer(server.token)}
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)) as connection:
        connection.request("GET", f"{RUNS}/{run}/events", headers=headers)
        answer = connection.getresponse()
        lines = iter(answer)
        assert [next(line for line in lines if line.startswith(b":")) for _ in range(3)] == [b":\n"] * 3
        server.go.set()
        assert b"RUN_FINISHED" in answer.read()


def test_P7_a_number_that_is_none_is_refused(server: Scripted):
    run, _ = finished(server)
    for wrong in ("x", "-1", "1.5", "²", "0x1", "1 2", "1" * 5_000):
        path = wrong.replace("²", "%C2%B2").replace(" ", "%20")
        assert_problem(get(server, f"{run}/events?after={path}"), 422, "invalid_input", "Last-Event-ID")
        if wrong.isascii():
            assert_problem(get(server, f"{run}/events", last_event_id=wrong), 422, "invalid_input", "Last-Event-ID")
    assert get(server, f"{run}/events?after=99999999999").body == b""


def test_P7_a_number_a_run_under_way_has_not_come_to_is_refused(server: Scripted):
    thread = new_id()
    server.go.clear()
    bodies = [ask(words, thread=thread) for words in ("hold", "later")]
    run, queued = (start(server.url, body, token=server.token) for body in bodies)
    server.reader(run).wait_for(lambda received: b"TEXT_MESSAGE_CONTENT" in received.body)
    words = "is 99, but the newest event of this run is number "
    assert_problem(get(server, f"{run}/events", last_event_id="99"), 422, "invalid_input", words)
    assert_problem(get(server, f"{queued}/events?after=1"), 422, "invalid_input", "is number 0")
    server.go.set()
    assert get(server, f"{queued}/events").status == 200


def test_P7_the_dialect_is_the_one_asked_for_else_the_one_of_the_run(server: Scripted):
    new, events = finished(server)
    body = {name: value for name, value in ask(SUM).items() if name != "protocolVersion"}
    old = str(body["runId"])
    server.play(body)
    assert b'"outcome"' in get(server, f"{new}/events").body
    assert b'"outcome"' not in get(server, f"{old}/events").body
    assert b'"outcome"' in get(server, f"{old}/events?protocolVersion=1.0").body
    older = events_of(get(server, f"{new}/events?protocolVersion=0.9"))
    assert older[:-1] == events[:-1]
    assert (older[-1].number, older[-1].event.keys()) == (events[-1].number, {"type", "threadId", "runId"})


def test_P8_a_cancel_ends_the_model_call_at_once_and_keeps_what_was_said(server: Scripted):
    run, model_request = server.begin(ask("hold"))
    reader = server.reader(run)
    reader.wait_for(lambda received: b"TEXT_MESSAGE_CONTENT" in received.body)
    first = cancel(server, run)
    assert first.status == 200
    assert model_request.wait_disconnected()
    events = reader.wait()
    assert events[-1].event["outcome"] == {"type": "cancelled"}
    assert events[-2].event["type"] == "TEXT_MESSAGE_END"
    problem = get(server, run).json
    assert (problem["status"], problem["outcome"], problem["error"]) == ("cancelled", "cancelled", None)
    again = cancel(server, run)
    assert (again.status, again.json) == (200, problem)
    assert list(read(server, run)) == list(events)
