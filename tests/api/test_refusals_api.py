"""P2, P3, P4 over real HTTP: every rule alone and in pairs, hostile bodies, and the seed's own examples."""

from collections.abc import Generator, Mapping
from typing import cast

import pytest

from recto.conversation.json import Json, dump, load
from recto.ids import new_id
from recto.testing.client import RUNS, HttpReply, read_events, request
from recto.testing.process import ServerProcess
from tests.api.protocol_examples import PICTURE, TEXT, TOOLS
from tests.api.wrong_inputs import (
    FOREIGN,
    LIMIT,
    RULES,
    SPEAKER,
    Body,
    Rule,
    assert_alive,
    assert_problem,
    assert_refused,
    binary,
    broken,
    good,
    send_chunked,
    send_part,
    with_block,
    with_messages,
)

HISTORY = "/api/v1/agent/history"
BY_NAME = {rule.name: rule for rule in RULES}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server with the demo model."""
    with ServerProcess.serve(tmp_path_factory.mktemp("demo"), {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat"}) as server:
        yield server.url


def post(url: str, body: object) -> HttpReply:
    return request(url, "POST", RUNS, body)


def code_of(rule: Rule) -> str:
    return "too_large" if rule.status == 413 else "invalid_input"


# The table


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_P2_a_rule_that_is_broken_is_told_in_its_own_words(url: str, rule: Rule):
    assert_refused(post(url, broken(rule)), rule.status, rule.detail, code_of(rule))


def test_P2_with_all_rules_broken_the_first_is_told_and_without_it_the_next(url: str):
    for place, rule in enumerate(RULES):
        assert_refused(post(url, broken(*RULES[place:])), rule.status, rule.detail, code_of(rule))


def test_P2_a_body_without_a_length_is_measured_too(url: str):
    size = BY_NAME["size"]
    assert send_chunked(url, dump(good()).ljust(LIMIT)).status == 202
    for rule in RULES:
        assert_refused(send_chunked(url, broken(size, rule)), 413, size.detail, "too_large")


def test_P2_a_body_that_is_said_to_be_huge_is_refused_before_it_is_there(url: str):
    reply = send_part(url, dump(good()).ljust(LIMIT + 1), length=10**12)
    assert_refused(reply, 413, BY_NAME["size"].detail, "too_large")


@pytest.mark.parametrize(("method", "tail"), [("PATCH", ""), ("POST", "/fork")])
def test_P17_another_body_that_is_too_large_is_not_called_an_input_of_a_run(url: str, method: str, tail: str):
    body = good()
    assert post(url, body).status == 202
    path = f"/api/v1/agent/threads/{body['threadId']}{tail}"
    assert request(url, method, path, dump({"title": "Short"}).ljust(LIMIT)).status in (200, 201)
    reply = request(url, method, path, dump({"title": "Short"}).ljust(LIMIT + 1))
    assert_refused(reply, 413, "Request body exceeds size limit", "too_large")


def test_P2_what_just_keeps_its_limit_is_taken(url: str):
    wide = "🌕" * 5_000
    most = [
        {**good(), "runId": new_id().ljust(128, "r")},
        {**good(), "threadId": new_id().upper()},
        with_messages(good(), after=[SPEAKER] * 199),
        {**good(), "messages": [{"id": "m", "role": "user", "content": wide * 2}]},
        {**good(), "messages": [{"id": "m", "role": "user", "content": [{"type": "text", "text": wide}] * 2}]},
    ]
    assert [post(url, body).status for body in most] == [202] * len(most)


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/image", "Image"])
def test_P2_a_binary_block_of_no_image_type_is_refused(url: str, kind: str | None):
    block: Body = {"type": "binary", "mimeType": kind, "url": FOREIGN}
    assert_refused(post(url, with_block(good(), block)), 422, BY_NAME["image"].detail)


@pytest.mark.parametrize(
    "block",
    [
        binary(mimeType="image/png", url=FOREIGN),
        binary(mimeType="IMAGE/PNG", url="http://127.0.0.1/api/v1/agent/files/x?signature=x"),
        {"type": "image", "source": {"type": "url", "value": FOREIGN, "mimeType": "image/png"}},
        {"type": "document", "source": {"type": "url", "value": FOREIGN, "mimeType": "application/pdf"}},
        {"type": "audio", "source": {"type": "url", "value": "file:///etc/passwd", "mimeType": "audio/mpeg"}},
        {"type": "video", "source": {"type": "url", "value": "javascript:1", "mimeType": "video/mp4"}},
    ],
    ids=lambda block: str(block["type"]),
)
def test_P2_a_file_of_any_kind_at_an_address_this_server_did_not_sign_is_refused(url: str, block: Body):
    assert_refused(post(url, with_block(good(), block)), 422, BY_NAME["signed"].detail)


def test_P2_a_refused_run_leaves_nothing_behind(url: str):
    body = BY_NAME["signed"].break_it(good())
    assert post(url, body).status == 422
    assert request(url, "GET", f"{RUNS}/{body['runId']}").status == 404
    assert request(url, "GET", f"/api/v1/agent/threads/{body['threadId']}").status == 404
    assert post(url, {**good(), "threadId": body["threadId"], "runId": body["runId"]}).status == 202


# Hostile bodies


def with_raw(field: str, value: str) -> bytes:
    """A good input with one more field, as it is written."""
    return dump(good())[:-1] + f',"{field}":{value}}}'.encode()


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


HOSTILE: Mapping[str, bytes] = {
    "empty": b"",
    "spaces": b" \n ",
    "an array": b"[]",
    "an array of an input": b"[" + dump(good()) + b"]",
    "null": b"null",
    "a number": b"7",
    "a text": b'"threadId"',
    "cut off": dump(good())[:-1],
    "two": dump(good()) * 2,
    "no UTF-8": dump(good()).replace(b"Hi.", b"\xff\xfe"),
    "overlong UTF-8": dump(good()).replace(b"Hi.", b"\xc0\xaf"),
    "UTF-16": dump(good()).decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + dump(good()),
    "a surrogate in UTF-8": dump(good()).replace(b"Hi.", b"\xed\xa0\x80"),
    "half a pair": dump(good()).replace(b"Hi.", b"\\ud800"),
    "a pair the wrong way": dump(good()).replace(b"Hi.", b"\\udc00\\ud800"),
    "half a pair in a name": with_raw("\\udfff", "1"),
    "a bare NUL": dump(good()).replace(b"Hi.", b"\0"),
    "a written NUL": dump(good()).replace(b"Hi.", b"\\u0000"),
    "a NUL in a name": with_raw("\\u0000", "1"),
    "a NUL behind it": dump(good()) + b"\0",
    "not a number": with_raw("state", "NaN"),
    "infinity": with_raw("state", "-Infinity"),
    "a number out of range": with_raw("state", "1e400"),
    "a number of 5001 digits": with_raw("state", str("1" + "0" * 5_000)),
    "a number for a thread": with_raw("threadId", "1" + "0" * 400),
    "open brackets": b"[" * 100_000,
    "open braces": b'{"a":' * 50_000,
    "nested arrays": nested(100_000).encode(),
    "a nested state": with_raw("state", nested(100_000)),
    "nested props": with_raw("forwardedProps", '{"a":' * 20_000 + "1" + "}" * 20_000),
    "a nested schema": with_raw("tools", '[{"name":"t","parameters":' + '{"not":' * 300 + "{}" + "}" * 301 + "]"),
    "a nested message": with_raw("messages", nested(1_000)),
    "just too deep": with_raw("state", nested(128)),
    "comments": dump(good()) + b"// please",
    "a form": b"threadId=1&runId=2",
}


@pytest.mark.parametrize("body", list(HOSTILE.values()), ids=list(HOSTILE))
def test_P2_a_hostile_body_is_refused_and_the_server_lives_on(url: str, body: bytes):
    reply = post(url, body)
    assert reply.status == 422
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


# The same run again


def test_P4_the_same_json_in_another_form_is_the_same_run(url: str):
    body: Body = {**good(), "state": {"a": [1, 2], "b": {"c": "é"}}, "forwardedProps": {"x": 1, "y": None}}
    first = post(url, body)
    spaced = dump(body).replace(b":", b" :\n\t").replace(b'","', b'" , "')
    turned = dump({name: _turned(body[name]) for name in reversed(body)})
    escaped = dump(body).replace("é".encode(), b"\\u00e9")
    assert len({dump(body), spaced, turned, escaped}) == 4
    assert [post(url, form).body for form in (spaced, turned, escaped)] == [first.body] * 3
    runs = request(url, "GET", f"/api/v1/agent/threads/{body['threadId']}/runs").json["runs"]
    assert [run["taskId"] for run in cast("list[Body]", runs)] == [first.json["taskId"]]


def _turned(value: Json) -> Json:
    return dict(reversed(value.items())) if isinstance(value, dict) else value


@pytest.mark.parametrize("state", [True, 1.0, "1", [1], None])
def test_P4_other_json_under_the_same_name_is_a_conflict_however_alike(url: str, state: Json):
    body: Body = {**good(), "state": 1}
    assert post(url, body).status == 202
    problem = f"Run '{body['runId']}' was started before, with another input. Use a new runId."
    assert_refused(post(url, {**body, "state": state}), 409, problem, "conflict")
    assert post(url, body).status == 202


def test_P4_a_known_run_is_compared_before_its_urls_are_looked_at(url: str):
    body = good()
    assert post(url, body).status == 202
    signed = BY_NAME["signed"]
    problem = f"Run '{body['runId']}' was started before, with another input. Use a new runId."
    assert_refused(post(url, signed.break_it(body)), 409, problem, "conflict")
    # What is asked before the urls is asked before that, too.
    data = BY_NAME["data"]
    assert_refused(post(url, data.break_it(body)), 422, data.detail)
    assert_refused(post(url, {**signed.break_it(body), "runId": new_id()}), 422, signed.detail)


# The seed's examples, as they stand there


def test_P3_the_seeds_examples_are_taken_one_after_another_and_an_id_used_again_is_a_new_turn(url: str):
    replies = [post(url, example.encode()) for example in (TEXT, PICTURE, TOOLS)]
    assert [reply.status for reply in replies] == [202, 422, 202]
    assert_refused(replies[1], 422, BY_NAME["signed"].detail)
    for reply in (replies[0], replies[2]):
        assert list(read_events(url, str(reply.json["taskId"])))[-1].event["type"] == "RUN_FINISHED"
    thread = cast("Body", load(TEXT))["threadId"]
    found = cast("list[Body]", request(url, "GET", f"{HISTORY}?threadId={thread}").json["messages"])
    users = [(message["id"], message["content"]) for message in found if message["role"] == "user"]
    assert [words for _, words in users] == ["帮我查一下北京今天的天气", "北京天气怎么样?"]
    assert users[0][0] == "msg-001"
    assert users[1][0] not in ("msg-001", "")
