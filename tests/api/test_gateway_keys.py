"""Who may use the gateway, with whose key their requests go on, and what each of them can see."""

import os
import signal
import threading
from collections.abc import Generator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.testing.model_server import Answer, failure
from tests.api.relaying_server import CHAT, MESSAGES, SERVER_KEYS, Relaying, relaying_server, reply_to, user
from tests.api.scripted_server import ALICE, BOB, LOOKER
from tests.support.client import TOKEN, HttpReply, request

OWN, OTHER = "sk-own-key-of-a-caller-1", "sk-own-key-of-a-caller-2"
BODY: dict[str, Json] = {"model": "m", "stream": True, "messages": [user("A secret of mine.")]}
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4iLCJleHAiOjF9.c2lnbmVk"


@pytest.fixture(scope="module")
def users_only(tmp_path_factory: pytest.TempPathFactory) -> Generator[Relaying]:
    """As it is where nobody set anything: no key of a caller is taken, and this one has none of its own for OpenAI."""
    settings = {"RECTO_GATEWAY_KEYS": "users", "OPENAI_API_KEY": "", "RECTO_MODEL": "demo"}
    with relaying_server(tmp_path_factory.mktemp("users"), settings, "gateway") as server:
        yield server


def test_X3_a_callers_own_key_goes_on_as_it_came_and_the_servers_does_not(gateway: Relaying):
    gateway.post(CHAT, BODY, OWN)
    assert gateway.last_request.headers["authorization"] == f"Bearer {OWN}"
    gateway.post(MESSAGES, {**BODY, "max_tokens": 9}, None, x_api_key=OWN)
    assert gateway.last_request.headers["x-api-key"] == OWN
    assert "authorization" not in gateway.last_request.headers
    assert not any(key in str(gateway.last_request.headers) for key in SERVER_KEYS)


def test_X3_nobody_sees_or_joins_the_conversation_of_another_key(gateway: Relaying):
    for key in (OWN, OTHER, ALICE, BOB):
        gateway.post(CHAT, {**BODY, "messages": [user("The same words.")]}, key)
    calls = dict[str, str]()
    for key in (OWN, OTHER, ALICE, BOB):
        results = [row for row in gateway.rows("/threads", "threads", key) if row["title"] == "The same words."]
        assert len(results) == 1
        (row,) = gateway.rows(f"/threads/{results[0]['id']}/calls", "calls", key)
        calls[key] = str(row["run"])
    assert len(set(calls.values())) == 4
    for key in calls:
        for other in calls.keys() - {key}:
            assert gateway.get(f"/api/v1/agent/runs/{calls[other]}/calls/1", key).status == 404
    assert gateway.newest_call(OWN)["verified"] is True


def test_X3_a_key_of_a_provider_opens_nothing_but_the_gateway(gateway: Relaying):
    gateway.post(CHAT, BODY, OWN)
    for method, path in (("GET", "/api/v1/agents"), ("GET", "/api/v1/me"), ("POST", "/api/v1/agent/runs")):
        reply = request(gateway.url, method, path, {} if method == "POST" else None, token=OWN)
        assert reply.status == 403, (path, reply.body)
    threads = gateway.rows("/threads", "threads", OWN)
    assert gateway.get("/api/v1/agent/savings", OWN).status == 200
    deleted = request(gateway.url, "DELETE", f"/api/v1/agent/threads/{threads[0]['id']}", token=OWN)
    assert (deleted.status, deleted.json["code"]) == (403, "read_only")


def test_X3_no_credential_of_this_server_ever_reaches_a_provider(gateway: Relaying):
    before = len(gateway.model.requests)
    # One that ran out, one beside a caller's own, one that may only look, and none at all.
    assert gateway.post(CHAT, BODY, JWT).status == 401
    assert gateway.post(CHAT, BODY, OWN, x_api_key=ALICE).status == 401
    assert gateway.post(CHAT, BODY, LOOKER).status == 403
    assert gateway.post(CHAT, BODY, None).status == 401
    assert len(gateway.model.requests) == before
    gateway.post(CHAT, BODY, ALICE, cookie=f"key={ALICE}", api_key=ALICE, proxy_authorization=ALICE)
    assert ALICE not in str(gateway.last_request.headers)
    assert gateway.last_request.headers["authorization"] == f"Bearer {SERVER_KEYS[0]}"


def test_X3_a_users_credential_in_any_other_place_does_not_go_on(gateway: Relaying):
    gateway.post(CHAT, BODY, ALICE, x_goog_api_key=ALICE, x_note=f"of {ALICE}", x_other="stays")
    assert ALICE not in str(gateway.last_request.headers)
    assert gateway.last_request.headers["x-other"] == "stays"
    before = len(gateway.model.requests)
    for query in (f"key={ALICE}", f"key=%61{ALICE[1:]}"):
        reply = gateway.post(f"{CHAT}?{query}", BODY, ALICE)
        assert (reply.status, "credential" in reply.body.decode()) == (400, True)
    assert len(gateway.model.requests) == before


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("is_streamed", [True, False])
def test_X3_a_callers_key_that_a_provider_repeats_is_neither_logged_nor_stored(
    gateway: Relaying, path: str, is_streamed: bool
):
    words = f"Incorrect API key provided: {OWN}"
    rejection = failure(401, words)
    gateway.scripts.append(lambda _request: Answer(fault=("invalid", words)) if is_streamed else rejection)
    headers = {"x_api_key": OWN} if path == MESSAGES else {}
    reply = gateway.post(path, {**BODY, "max_tokens": 9}, None if headers else OWN, **headers)
    assert OWN in reply.body.decode()
    thread = gateway.rows("/threads", "threads", OWN)[0]["id"]
    run_text = str(gateway.rows(f"/threads/{thread}/runs", "runs", OWN)[0])
    for text in (run_text, gateway.process.output):
        assert ("Incorrect API key provided: ***" in text, OWN in text) == (True, False)
    assert "_API_KEY" not in run_text


def test_X3_no_other_place_of_a_provider_is_reached_by_way_of_a_models_name(gateway: Relaying):
    before = len(gateway.model.requests)
    for name in ("..", "%2e%2e", "a%2f..%2ffiles", ".", "a%3Fb", "a%23b", "%252e%252e", "a%5Cb", "%2Ffiles"):
        reply = gateway.get(f"/v1/models/{name}")
        assert (reply.status, "is not a model name" in reply.body.decode()) == (400, True), name
    assert len(gateway.model.requests) == before
    gateway.get("/%761/models")
    assert gateway.last_request.path == "/v1/models"
    gateway.get("/v1/models/ft:gpt%2D4.1::x%2Fy")
    assert gateway.last_request.path == "/v1/models/ft:gpt-4.1::x%2Fy"


def test_X3_a_key_that_nothing_was_sent_with_is_a_wrong_one_outside_the_gateway(gateway: Relaying):
    mistyped = ALICE + "x"
    for path in ("/api/v1/agent/threads", "/api/v1/me"):
        reply = gateway.get(path, mistyped)
        assert (reply.status, reply.json["code"]) == (401, "unauthorized")
    assert "wrong_credential" in gateway.process.output
    gateway.post(CHAT, BODY, "sk-a-key-that-is-new-here")
    assert len(gateway.rows("/threads", "threads", "sk-a-key-that-is-new-here")) == 1


def error_of(reply: HttpReply) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", reply.json["error"])


def test_X3_the_path_says_who_is_asked_and_a_header_only_where_both_have_it(gateway: Relaying):
    for path in (CHAT, "/v1/responses"):
        gateway.post(path, BODY, anthropic_version="2023-06-01")
        assert gateway.last_request.headers["authorization"] == f"Bearer {SERVER_KEYS[0]}"
        assert "x-api-key" not in gateway.last_request.headers


def test_X3_what_is_of_one_connection_or_of_a_proxy_stays_behind_and_other_bytes_are_the_same(gateway: Relaying):
    headers = {"connection": "close, X-Hop", "x_hop": "1", "proxy_connection": "close", "cf_connecting_ip": "10.0.0.1"}
    gateway.answers.append(Answer(text="a", headers=(("X-Other", "b"), ("Connection", "X-Back"), ("X-Back", "1"))))
    reply = gateway.post(CHAT, BODY, x_name="Zo\xeb", **headers)
    assert gateway.last_request.headers.keys().isdisjoint({name.replace("_", "-") for name in headers})
    assert gateway.last_request.headers["x-name"] == "Zo\xeb"
    assert (reply.headers["x-other"], "x-back" in reply.headers) == ("b", False)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_X3_where_callers_are_not_taken_an_unknown_key_spends_nothing(users_only: Relaying, path: str):
    before, headers = len(users_only.model.requests), {"x_api_key": OWN} if path == MESSAGES else {}
    reply = users_only.post(path, {**BODY, "max_tokens": 9}, None if headers else OWN, **headers)
    error = error_of(reply)
    assert (reply.status, "The credential is unknown" in str(error["message"])) == (401, True)
    assert error["type"] == "authentication_error" if path == MESSAGES else error["code"] == "unauthorized"
    assert len(users_only.model.requests) == before


def test_X3_a_server_without_a_key_says_which_one_to_set(users_only: Relaying):
    reply = users_only.post(CHAT, BODY)
    assert reply.status == 403
    assert "OPENAI_API_KEY" in str(error_of(reply)["message"])


def test_X3_recto_gateway_serves_that_and_a_look_at_it_and_nothing_else(users_only: Relaying):
    done = users_only.post(MESSAGES, {**BODY, "max_tokens": 9})
    assert done.status == 200
    assert users_only.newest_call()["verified"] is True
    assert users_only.get("/api/v1/agent/savings").status == 200
    assert request(users_only.url, "GET", "/healthz", token=None).status == 200
    assert request(users_only.url, "GET", "/metrics", token=TOKEN).status == 200
    for method, path in (("POST", "/api/v1/agent/runs"), ("POST", "/api/v1/chat"), ("GET", "/api/v1/agents")):
        assert request(users_only.url, method, path, {} if method == "POST" else None, token=ALICE).status in (404, 405)
    assert "is listening on" in users_only.process.output


@pytest.mark.full
def test_X3_keys_of_users_are_refused_where_only_callers_are_taken(tmp_path: Path):
    with relaying_server(tmp_path, {"RECTO_GATEWAY_KEYS": "callers"}, "gateway") as callers:
        assert callers.post(CHAT, BODY, OWN).status == 200
        reply = callers.post(CHAT, BODY, ALICE)
        assert (reply.status, len(callers.model.requests)) == (403, 1)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/embeddings", b"{}", 404),
        ("POST", "/v1/messages/batches", b"{}", 404),
        ("GET", CHAT, None, 405),
        ("GET", MESSAGES, None, 405),
        *[("POST", path, body, 400) for path in (CHAT, MESSAGES) for body in (b"not JSON", b'{"messages": []}')],
    ],
)
def test_X3_what_the_gateway_does_not_have_or_take_is_told_as_each_sdk_expects_it(
    gateway: Relaying, method: str, path: str, body: bytes | None, status: int
):
    before = len(gateway.model.requests)
    reply = request(gateway.url, method, path, body, token=ALICE)
    is_anthropic = path.startswith(MESSAGES)
    fields = {"type", "message"} if is_anthropic else {"message", "type", "param", "code"}
    assert (reply.status, error_of(reply).keys(), "allow" in reply.headers) == (status, fields, status == 405)
    assert (reply.json.get("type") == "error") == is_anthropic
    assert len(gateway.model.requests) == before


@pytest.mark.full
def test_X3_limits_are_told_with_the_seconds_to_wait(tmp_path: Path):
    settings = {"RECTO_GATEWAY_USER_CALLS": "1", "RECTO_USER_TOKENS": "20", "RECTO_GATEWAY_FIRST_BYTE_SECONDS": "0.5"}
    settings |= {"RECTO_GATEWAY_BYTES": "65536", "RECTO_MODEL_CONNECT_SECONDS": "1"}
    go = threading.Event()
    with relaying_server(tmp_path, settings) as limited:
        limited.scripts.append(lambda model_request: Answer(text="a b", hold=go, hold_after=1))
        first = threading.Thread(target=limited.post, args=(CHAT, BODY))
        first.start()
        assert limited.model.wait_requests(1)[0].wait_held()
        # The second is one that would be too large: nothing of what is one too many is read.
        for path in (CHAT, "/v1/responses"):
            reply = limited.post(path, {**BODY, "more": "x" * 70_000})
            assert (reply.status, reply.headers["retry-after"]) == (429, "5")
        go.set()
        first.join()
        limited.scripts[:] = [lambda model_request: reply_to(model_request, "one")]
        assert limited.post(CHAT, BODY).status == 200
        large = limited.post(CHAT, {**BODY, "more": "x" * 70_000}, BOB)
        assert (large.status, "size limit" in large.body.decode()) == (413, True)
        for path in (CHAT, "/v1/responses"):
            reply = limited.post(path, {**BODY, "messages": [user("More?")]})
            assert (reply.status, "tokens today" in reply.body.decode()) == (429, True)
        limited.scripts[:] = [lambda _request: Answer(hang=True)]
        reply = limited.post(MESSAGES, {**BODY, "max_tokens": 9}, BOB)
        assert (reply.status, error_of(reply)["type"]) == (504, "timeout_error")


@pytest.mark.full
def test_X3_a_server_that_is_lost_while_it_relays_leaves_a_call_that_says_so(tmp_path: Path):
    go = threading.Event()
    with relaying_server(tmp_path) as before:
        before.scripts.append(lambda model_request: Answer(text="a b c", hold=go, hold_after=2))
        asking = threading.Thread(target=_ignoring, args=(before,))
        asking.start()
        assert before.model.wait_requests(1)[0].wait_held()
        (thread,) = before.rows("/threads", "threads")
        (run,) = before.rows(f"/threads/{thread['id']}/runs", "runs")
        assert (run["status"], run["outcome"]) == ("running", "unanswered")
        os.kill(before.process.pid, signal.SIGKILL)
        asking.join()
    with relaying_server(tmp_path) as after:
        (run,) = after.rows(f"/threads/{thread['id']}/runs", "runs")
        assert (run["status"], run["outcome"]) == ("failed", "lost")
        call = after.newest_call()
        assert (call["verified"], call["page"], call["ended"]) == (True, BODY, None)


def _ignoring(server: Relaying) -> None:
    try:
        server.post(CHAT, BODY)
    except (OSError, HTTPException):
        return


def test_X3_what_goes_through_is_counted_as_every_call_is(gateway: Relaying):
    gateway.post(CHAT, {**BODY, "model": "gpt-5"})
    gateway.post(CHAT, {**BODY, "model": "made-up"})
    lines = request(gateway.url, "GET", "/metrics", token=TOKEN).body.decode()
    assert 'recto_model_calls_total{model="openai:gpt-5",result="replied"} 1.0' in lines
    assert 'recto_tokens_total{kind="input",model="openai:gpt-5"} 10.0' in lines
    # Whoever asks names the model: a name that no list of prices has is no label.
    assert 'recto_model_calls_total{model="unknown",result="replied"}' in lines
    assert "made-up" not in lines
    assert 'recto_runs_total{agent="gateway",outcome="done"}' in lines


@pytest.mark.full
def test_X3_a_server_with_a_wrong_address_of_a_provider_serves_the_rest(tmp_path: Path):
    wrong = {"ANTHROPIC_BASE_URL": "https://me:kept-secret@provider.example"}
    with relaying_server(tmp_path, wrong) as server:
        assert server.post(CHAT, BODY).status == 200
        reply = server.post(MESSAGES, {**BODY, "max_tokens": 9})
        assert (reply.status, "See its log for the reason" in str(error_of(reply)["message"])) == (404, True)
