"""P2, P3, P4 over real HTTP: each rule before the next, hostile bodies, and the seed's own examples."""

from collections.abc import Generator, Mapping
from typing import cast

import pytest

from recto.conversation.json import Json, dump, load
from recto.ids import new_id
from recto.testing.process import ServerProcess
from tests.api.protocol_examples import PICTURE, TEXT, TOOLS
from tests.api.wrong_inputs import (
    LIMIT,
    RULES,
    Body,
    assert_alive,
    assert_problem,
    assert_refused,
    broken,
    good,
    send_chunked,
    send_part,
)
from tests.support.client import RUNS, HttpReply, read_events, request

HISTORY = "/api/v1/agent/history"
BY_NAME = {rule.name: rule for rule in RULES}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server with the demo model."""
    with ServerProcess.serve(tmp_path_factory.mktemp("demo"), {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat"}) as server:
        yield server.url


def post(url: str, body: object) -> HttpReply:
    return request(url, "POST", RUNS, body)


def test_P2_with_all_rules_broken_the_first_is_told_and_without_it_the_next(url: str):
    for place, rule in enumerate(RULES):
        code = "too_large" if rule.status == 413 else "invalid_input"
        assert_refused(post(url, broken(*RULES[place:])), rule.status, rule.detail, code)


def test_P2_a_body_without_a_length_is_measured_too(url: str):
    size = BY_NAME["size"]
    assert send_chunked(url, dump(good()).ljust(LIMIT)).status == 202
    assert_refused(send_chunked(url, broken(*RULES)), 413, size.detail, "too_large")
    # One that is said to be huge is refused before it is there.
    reply = send_part(url, dump(good()).ljust(LIMIT + 1), length=10**12)
    assert_refused(reply, 413, size.detail, "too_large")


def test_P17_another_body_that_is_too_large_is_not_called_an_input_of_a_run(url: str):
    body, title = good(), dump({"title": "Short"})
    assert post(url, body).status == 202
    path = f"/api/v1/agent/threads/{body['threadId']}"
    assert request(url, "PATCH", path, title.ljust(LIMIT)).status == 200
    reply = request(url, "PATCH", path, title.ljust(LIMIT + 1))
    assert_refused(reply, 413, "Request body exceeds size limit", "too_large")


def with_raw(field: str, value: str) -> bytes:
    """A good input with one more field, as it is written."""
    return dump(good())[:-1] + f',"{field}":{value}}}'.encode()


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


HOSTILE: Mapping[str, bytes] = {
    "empty": b"",
    "an array": b"[]",
    "null": b"null",
    "cut off": dump(good())[:-1],
    "two": dump(good()) * 2,
    "no UTF-8": dump(good()).replace(b"Hi.", b"\xff\xfe"),
    "UTF-16": dump(good()).decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + dump(good()),
    "half a pair": dump(good()).replace(b"Hi.", b"\\ud800"),
    "half a pair in a name": with_raw("\\udfff", "1"),
    "a bare NUL": dump(good()).replace(b"Hi.", b"\0"),
    "a written NUL": dump(good()).replace(b"Hi.", b"\\u0000"),
    "a NUL in a name": with_raw("\\u0000", "1"),
    "not a number": with_raw("state", "NaN"),
    "a number out of range": with_raw("state", "1e400"),
    "a number of 5001 digits": with_raw("state", str("1" + "0" * 5_000)),
    "open brackets": b"[" * 100_000,
    "nested arrays": nested(100_000).encode(),
    "a nested state": with_raw("state", nested(100_000)),
    "a nested schema": with_raw("tools", '[{"name":"t","parameters":' + '{"not":' * 300 + "{}" + "}" * 301 + "]"),
    "a nested message": with_raw("messages", nested(1_000)),
    "just too deep": with_raw("state", nested(128)),
    "a form": b"threadId=1&runId=2",
}


def test_P2_a_hostile_body_is_refused_and_the_server_lives_on(url: str):
    for name, body in HOSTILE.items():
        reply = post(url, body)
        assert reply.status == 422, name
        assert_problem(reply)
    assert_alive(url)


def test_P2_a_field_written_twice_counts_once_as_what_was_written_last(url: str):
    run = new_id()
    reply = post(url, dump(good())[:-1] + f',"runId":"first","runId":"{run}"}}'.encode())
    assert (reply.status, reply.json["runId"]) == (202, run)
    assert request(url, "GET", f"{RUNS}/first").status == 404


UNUSUAL: Mapping[str, tuple[str, str]] = {
    "a state as deep as may be": ("state", nested(127)),
    "props as deep as may be": ("forwardedProps", '{"a":' * 127 + "1" + "}" * 127),
    "an integer beyond 64 bits": ("state", "18446744073709551616"),
    "a number that is nearly nothing": ("state", "1e-400"),
    "unknown fields": ("unknown", '{"a": [1, null, true]}'),
}


@pytest.mark.parametrize(("field", "value"), list(UNUSUAL.values()), ids=list(UNUSUAL))
def test_P4_an_unusual_input_is_taken_once_and_known_again(url: str, field: str, value: str):
    body = with_raw(field, value)
    first = post(url, body)
    assert first.status == 202
    again = post(url, body.replace(b'","', b'" , "'))
    assert (again.status, again.body) == (202, first.body)
    assert list(read_events(url, str(first.json["taskId"])))[-1].event["type"] == "RUN_FINISHED"


def test_P4_the_same_json_in_another_form_is_the_same_run(url: str):
    body: Body = {**good(), "state": {"a": [1, 2], "b": {"c": "é"}}, "forwardedProps": {"x": 1, "y": None}}
    first = post(url, body)
    spaced = dump(body).replace(b":", b" :\n\t").replace(b'","', b'" , "')
    reversed_body = dump({name: _reverse(body[name]) for name in reversed(body)})
    escaped = dump(body).replace("é".encode(), b"\\u00e9")
    assert len({dump(body), spaced, reversed_body, escaped}) == 4
    assert [post(url, form).body for form in (spaced, reversed_body, escaped)] == [first.body] * 3
    runs = request(url, "GET", f"/api/v1/agent/threads/{body['threadId']}/runs").json["runs"]
    assert [run["taskId"] for run in cast("list[Body]", runs)] == [first.json["taskId"]]


def _reverse(value: Json) -> Json:
    return dict(reversed(value.items())) if isinstance(value, dict) else value


@pytest.mark.parametrize("state", [True, 1.0, "1", [1], None])
def test_P4_other_json_under_the_same_name_is_a_conflict_however_alike(url: str, state: Json):
    body: Body = {**good(), "state": 1}
    assert post(url, body).status == 202
    problem = f"Run '{body['runId']}' was started before, with another input. Use a new runId."
    assert_refused(post(url, {**body, "state": state}), 409, problem, "conflict")
    assert post(url, body).status == 202


def test_P3_the_seeds_examples_are_taken_one_after_another_and_an_id_used_again_is_a_new_turn(url: str):
    replies = [post(url, example.encode()) for example in (TEXT, PICTURE, TOOLS)]
    assert [reply.status for reply in replies] == [202, 422, 202]
    assert_refused(replies[1], 422, BY_NAME["signed"].detail)
    for reply in (replies[0], replies[2]):
        assert list(read_events(url, str(reply.json["taskId"])))[-1].event["type"] == "RUN_FINISHED"
    thread = cast("Body", load(TEXT))["threadId"]
    messages = cast("list[Body]", request(url, "GET", f"{HISTORY}?threadId={thread}").json["messages"])
    users = [(message["id"], message["content"]) for message in messages if message["role"] == "user"]
    assert [words for _, words in users] == ["帮我查一下北京今天的天气", "北京天气怎么样?"]
    assert users[0][0] == "msg-001"
    assert users[1][0] not in ("msg-001", "")
